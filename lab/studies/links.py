"""Prints AUC and AP of predicted links beside the published ones of GAE: Cora, Citeseer, PubMed.

    .venv/bin/python -m lab.studies.links --seeds 5 --datasets cora

Each seed draws its own split (85% training, 5% validation, 10% test pairs) and its own weights. All
settings are those of `vrgcn train DATASET --predict edges`. The epoch is chosen by validation AUC.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

from vrgcn import predict
from vrgcn.data import root_folder
from vrgcn.runs.config_file import build
from vrgcn.runs.racing import raced
from vrgcn.runs.settings import Settings
from vrgcn.targets.pair_rules import simple_rules
from vrgcn.targets.ranking import EmbeddedEdges, Scorer, score_edges
from vrgcn.targets.spec import with_usual

PUBLISHED = {"cora": (91.0, 92.0), "citeseer": (89.5, 89.9), "pubmed": (96.4, 96.5)}
NAMES = ("auc", "ap")


def measured(dataset: str, seed: int, settings: dict[str, Any]) -> dict[str, Any]:
    """One run: scores of the model and of the rules by name, CPU seconds of all of it, epochs."""
    given = {"predict": "edges", "dataset": dataset, "data_root": root_folder(None)}
    values = with_usual(given | {"split_seed": seed, "seed": seed} | settings)
    found = build(Settings, values)
    graph = found.open_graph().graph
    pairs = graph.pairs
    assert pairs is not None
    start = time.process_time()
    _, job, begun = raced(found, graph)
    result = job.train(begun=begun)
    seconds = time.process_time() - start
    decoder: Any = job.model.decoder
    scorers: dict[str, Scorer] = {"model": EmbeddedEdges(decoder, predict(job.model, graph), pairs)}
    scores = {
        name: score_edges(scorer, pairs, "test", NAMES)
        for name, scorer in {**scorers, **simple_rules(pairs)}.items()
    }
    return {
        "scores": scores,
        "cpu_seconds": seconds,
        "epoch": result.epoch,
        "estimator": job.config.estimator,
    }


def told(values: list[float]) -> str:
    """Return the mean and the standard deviation in percent."""
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{100 * statistics.mean(values):.1f} ± {100 * deviation:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", nargs="+", default=list(PUBLISHED))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--settings", type=json.loads, default={}, help="as JSON, by name")
    parser.add_argument("--out", type=Path, help="JSON file of all runs")
    options = parser.parse_args()
    runs: dict[str, list[dict[str, Any]]] = {}
    for dataset in options.datasets:
        runs[dataset] = [measured(dataset, s, options.settings) for s in range(options.seeds)]
        for name in runs[dataset][0]["scores"]:
            row = [told([run["scores"][name][key] for run in runs[dataset]]) for key in NAMES]
            print(f"{dataset}  {name}  AUC {row[0]}  AP {row[1]}")
        seconds = statistics.mean(run["cpu_seconds"] for run in runs[dataset])
        auc, ap = PUBLISHED[dataset]
        estimator = runs[dataset][0]["estimator"]
        print(f"{dataset}  GAE, published  AUC {auc}  AP {ap}")
        print(f"{dataset}  {estimator}, {seconds:.1f} CPU seconds a run", flush=True)
    if options.out is not None:
        options.out.write_text(json.dumps(runs, indent=1) + "\n")


if __name__ == "__main__":
    main()
