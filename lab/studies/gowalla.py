"""Prints recall@20 and NDCG@20 on gowalla beside the published ones of LightGCN (.1824, .1547).

    .venv/bin/python -m lab.studies.gowalla --validate --epochs 60    # the curve on held-out pairs
    .venv/bin/python -m lab.studies.gowalla --seeds 3 --out gowalla.json

The data's column `split` has the official training and test pairs, `split_lightgcnpp` a tenth of
the training pairs for validation. Settings and the number of epochs were chosen by `--validate`,
which does not read the test pairs. The result is of a model that was then trained on all training
pairs for that number of epochs, and scored once: candidates are all items that are no training pair
of the user, recall is the mean over users of hits among 20 over the user's test items.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from pathlib import Path
from typing import Any

import pandas
import torch

from vrgcn import Graph, PairModel, TrainConfig, fit, predict, split_pairs
from vrgcn.data import root_folder
from vrgcn.targets.item_rules import item_rules
from vrgcn.targets.pair_rules import simple_rules
from vrgcn.targets.ranking import EmbeddedEdges, Scorer, score_edges
from vrgcn.training.state import Epoch

RELATION = "user-visited-place"
NAMES = ("recall@20", "ndcg@20")
PUBLISHED = (0.1824, 0.1547)
WIDTH, LAYERS = 64, 3
CONFIG: dict[str, Any] = {
    "estimator": "two-way",
    "pair_batches": "nodes",
    "batch_size": 2048,
    "loss": "softmax",
    "negatives": 4096,
    "negative_sampling": "shared",
    "temperature": 0.1,
    "learning_rate": 0.02,
    "epochs": 60,
    "schedule": "cosine",
    "metric": "recall@20",
    "diagnostics": 0,
}


def gowalla(root: Path, *, validate: bool) -> Graph:
    """Users and places of gowalla with their training pairs as edges.

    validate: with validation pairs and without test pairs; else the other way round
    """
    table = pandas.read_parquet(root / "gowalla" / "edges.parquet")
    users, places = int(table.user.max()) + 1, int(table.item.max()) + 1
    column = "split_lightgcnpp" if validate else "split"
    if validate:
        table = table[table[column] != "test"]
    visited = ("user", "visited", "place")
    graph = Graph.from_kinds(
        {"user": users, "place": places},
        {visited: torch.tensor(table[["user", "item"]].to_numpy().T)},
        edge_columns={visited: {"split": table[column].to_numpy()}},
    )
    return split_pairs(graph, RELATION, ratio=(1.0, 0.0, 0.0), split_column="split")


class Curve:
    """Keeps and prints the epochs of a run."""

    def __init__(self) -> None:
        self.points: list[dict[str, Any]] = []
        self._start = time.process_time()

    def epoch(self, point: Epoch) -> None:
        seconds = time.process_time() - self._start
        told = {"epoch": point.epoch, "loss": point.loss, "val": point.val, "cpu": seconds}
        self.points.append(told)
        val = "" if point.val is None else f"  validation {point.val:.4f}"
        print(f"epoch {point.epoch}  loss {point.loss:.4f}{val}  {seconds:.0f} CPU s", flush=True)


def trained(
    graph: Graph, seed: int, settings: dict[str, Any], decoder: str, width: int = WIDTH
) -> tuple[PairModel, Curve, float]:
    """A trained model, its curve, and the CPU seconds of training."""
    torch.manual_seed(seed)
    model = PairModel(
        "lightgcn",
        decoder,
        relation=RELATION,
        directed=True,
        in_features=graph.num_features,
        classes=width,
        nodes=graph.num_nodes,
        layers=LAYERS,
    )
    curve, start = Curve(), time.process_time()
    fit(model, graph, TrainConfig(**{**CONFIG, **settings, "seed": seed}), on_epoch=curve.epoch)
    return model, curve, time.process_time() - start


def scored(scorer: Scorer, graph: Graph) -> dict[str, float]:
    assert graph.pairs is not None
    return score_edges(scorer, graph.pairs, "test", NAMES)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--validate", action="store_true", help="the curve on validation pairs")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=CONFIG["epochs"])
    parser.add_argument("--every", type=int, default=5, help="epochs between evaluations")
    parser.add_argument("--decoder", default="lift")
    parser.add_argument("--width", type=int, default=WIDTH, help="of the learned rows")
    parser.add_argument("--rules", action="store_true", help="score simple rules too")
    parser.add_argument("--settings", type=json.loads, default={}, help="as JSON, by name")
    parser.add_argument("--out", type=Path, help="JSON file of all runs")
    options = parser.parse_args()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    graph = gowalla(root_folder(None), validate=options.validate)
    pairs = graph.pairs
    assert pairs is not None
    settings = {"epochs": options.epochs, "evaluate_every": options.every, **options.settings}
    runs: list[dict[str, Any]] = []
    for seed in range(options.seeds):
        model, curve, seconds = trained(graph, seed, settings, options.decoder, options.width)
        run: dict[str, Any] = {
            "seed": seed,
            "cpu_seconds": seconds,
            "settings": settings,
            "curve": curve.points,
        }
        if not options.validate:
            z = predict(model, graph, kind="all")
            run["scores"] = scored(EmbeddedEdges(model.decoder, z, pairs), graph)
            told = "  ".join(f"{name} {value:.4f}" for name, value in run["scores"].items())
            print(f"seed {seed}  {told}  {seconds:.0f} CPU seconds of training", flush=True)
        runs.append(run)
        if options.out is not None:
            options.out.write_text(json.dumps(runs, indent=1) + "\n")
    if options.validate:
        return
    for place, name in enumerate(NAMES if runs else ()):
        values = [run["scores"][name] for run in runs]
        deviation = statistics.stdev(values) if len(values) > 1 else 0.0
        mean = statistics.mean(values)
        print(f"{name}  {mean:.4f} ± {deviation:.4f}  LightGCN, published: {PUBLISHED[place]:.4f}")
    if options.rules:
        print_rules(graph)


def print_rules(graph: Graph) -> None:
    """Print what simple rules score, and their CPU seconds; validation pairs among the training
    pairs, which play no part in the rules' last fit, choose settings."""
    assert graph.pairs is not None
    held_out = gowalla(root_folder(None), validate=True).pairs
    assert held_out is not None
    choices, made = item_rules(held_out), item_rules(graph.pairs)
    for name in simple_rules(graph.pairs):
        start = time.process_time()
        if name in choices:
            setting = choices[name]().setting
            rule: Scorer = made[name](settings=(setting,))
        else:
            setting, rule = "", simple_rules(graph.pairs)[name]
        fitted = time.process_time()
        found = "  ".join(f"{key} {value:.4f}" for key, value in scored(rule, graph).items())
        seconds = fitted - start, time.process_time() - fitted
        print(
            f"{name} {setting}  {found}  CPU seconds {seconds[0]:.0f}, ranking {seconds[1]:.0f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
