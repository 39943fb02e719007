"""Prints Hits@20 on ogbl-ddi beside the published ones: GCN 37.1, GraphSAGE 53.9.

    .venv/bin/python -m lab.studies.ddi --validate --epochs 40       # validation alone
    .venv/bin/python -m lab.studies.ddi --seeds 10 --out ddi.json

The split and the negatives are the official ones. Hits@20 is OGB's: the share of true pairs that
score above the 20th highest of all given negatives. Drugs have no features: each has a learned row.
Validation pairs choose the settings and the epoch of each run; they carry no messages, in training
and in the test alike. `--validate` does not read the test pairs.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas
import torch
from torch import Tensor

from lab.studies.gowalla import Curve
from vrgcn import Graph, PairModel, TrainConfig, fit, predict, split_pairs
from vrgcn.data import root_folder
from vrgcn.targets.pair_rules import simple_rules
from vrgcn.targets.ranking import EmbeddedEdges, score_edges

METRIC = "hits@20"
PUBLISHED = {"GCN": 37.1, "GraphSAGE": 53.9}
MODEL: dict[str, Any] = {"encoder": "lightgcn", "decoder": "cosine", "classes": 256, "layers": 2}
CONFIG: dict[str, Any] = {
    "estimator": "two-way",
    "pair_batches": "nodes",
    "batch_size": 512,
    "loss": "softmax",
    "negatives": 512,
    "negative_sampling": "shared",
    "learning_rate": 0.005,
    "own_edges": "keep",
    "epochs": 12,
    "metric": METRIC,
    "diagnostics": 0,
}


def drugs(root: Path, *, validate: bool) -> Graph:
    """The drugs of ogbl-ddi with the official pairs and negatives; of a validation without those of
    the test."""

    def part(name: str) -> Tensor:
        return torch.tensor(pandas.read_parquet(root / "ogbl_ddi" / f"{name}.parquet").to_numpy())

    train, val, test = part("edges"), part("valid_edge"), part("test_edge")
    if validate:
        test = test[:0]
    words = ["train"] * len(train) + ["val"] * len(val) + ["test"] * len(test)
    nodes = len(part("nodes"))
    graph = Graph(
        torch.cat([train, val, test]).t(),
        torch.ones(nodes, 1),
        undirected=True,
        edge_columns={"split": words},
    )
    found = split_pairs(graph, split_column="split")
    assert found.pairs is not None
    given = {"val": part("valid_edge_neg")}
    if not validate:
        given["test"] = part("test_edge_neg")
    return found.replace(pairs=replace(found.pairs, given=given, negatives=given))


def trained(
    graph: Graph, seed: int, arguments: dict[str, Any], settings: dict[str, Any]
) -> tuple[PairModel, Curve, float]:
    """A trained model, its curve, and the CPU seconds of training and evaluation."""
    torch.manual_seed(seed)
    given = {"in_features": 1, "nodes": graph.num_nodes, **MODEL, **arguments}
    if given["encoder"] != "lightgcn":
        width = given["classes"]
        given = {"hidden": width, "node_embeddings": True, "layer_norm": False, **given}
    encoder, decoder = given.pop("encoder"), given.pop("decoder")
    model = PairModel(encoder, decoder, relation="edges", directed=False, **given)
    curve, start = Curve(), time.process_time()
    fit(model, graph, TrainConfig(**{**CONFIG, **settings, "seed": seed}), on_epoch=curve.epoch)
    return model, curve, time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--validate", action="store_true", help="validation alone")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=CONFIG["epochs"])
    parser.add_argument("--every", type=int, default=2, help="epochs between evaluations")
    parser.add_argument("--rules", action="store_true", help="score simple rules too")
    parser.add_argument("--model", type=json.loads, default={}, help="as JSON, by name")
    parser.add_argument("--settings", type=json.loads, default={}, help="as JSON, by name")
    parser.add_argument("--out", type=Path, help="JSON file of all runs")
    options = parser.parse_args()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    graph = drugs(root_folder(None), validate=options.validate)
    pairs = graph.pairs
    assert pairs is not None
    settings = {"epochs": options.epochs, "evaluate_every": options.every, **options.settings}
    runs: list[dict[str, Any]] = []
    for seed in range(options.seeds):
        model, curve, seconds = trained(graph, seed, options.model, settings)
        val = max(point["val"] for point in curve.points if point["val"] is not None)
        run: dict[str, Any] = {"seed": seed, "val": val, "cpu_seconds": seconds}
        run |= {"model": options.model, "settings": settings, "curve": curve.points}
        told = ""
        if not options.validate:
            z = predict(model, graph)
            scorer = EmbeddedEdges(model.decoder, z, pairs)
            run["test"] = score_edges(scorer, pairs, "test", (METRIC,))[METRIC]
            told = f"  test {100 * run['test']:.2f}"
        print(f"seed {seed}  validation {100 * val:.2f}{told}  {seconds:.0f} CPU s", flush=True)
        runs.append(run)
        if options.out is not None:
            options.out.write_text(json.dumps(runs, indent=1) + "\n")
    if options.validate:
        return
    values = [100 * run["test"] for run in runs]
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    published = ", ".join(f"{name} {value}" for name, value in PUBLISHED.items())
    print(f"Hits@20  {statistics.mean(values):.2f} ± {deviation:.2f}  published: {published}")
    if options.rules:
        for name, rule in simple_rules(pairs).items():
            print(name, f"{100 * score_edges(rule, pairs, 'test', (METRIC,))[METRIC]:.2f}")


if __name__ == "__main__":
    main()
