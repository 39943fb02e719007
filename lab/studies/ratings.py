"""Prints the error of predicted ratings beside the published ones of GC-MC: MovieLens-100k, u1.

    .venv/bin/python -m lab.studies.ratings --seeds 5

The 20,000 test ratings are those of the official split u1. Each seed draws 5% of the 80,000 others
for validation, which choose the epoch, and its own weights. Settings are those of `vrgcn train
GRAPH --predict user-rated-item.rating --split-column split_u1`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from vrgcn import predict
from vrgcn.data import root_folder
from vrgcn.data.tables import ImportSpec, import_tables
from vrgcn.runs.config_file import build
from vrgcn.runs.settings import Settings
from vrgcn.targets.spec import with_usual
from vrgcn.targets.value_rules import EmbeddedValues, ValueScorer, score_values, value_rules
from vrgcn.training.listener import Listener
from vrgcn.training.state import Epoch

RELATION = "user-rated-item"
PUBLISHED = {"GC-MC": 0.910, "GC-MC with features": 0.905}
NAMES = ("rmse", "mae")


def imported(out: Path) -> Path:
    """Import users, items and ratings, with the rating, the time and the split of each."""
    data = root_folder(None) / "ml100k"
    spec = ImportSpec(
        edges=(f"{RELATION}={data / 'edges.parquet'}",),  # type: ignore[arg-type]
        out=out,
        nodes=(f"user={data / 'users.parquet'}", f"item={data / 'items.parquet'}"),  # type: ignore[arg-type]
        id=("user.user", "item.item"),  # type: ignore[arg-type]
        drop=("item.title", "user.zip"),
        keep=("rated.rating", "rated.timestamp=date", "rated.split_u1"),
    )
    import_tables(spec)
    return out


class Curve(Listener):
    """Keeps the validation score of each epoch."""

    def __init__(self) -> None:
        self.scores: list[float] = []

    def epoch(self, epoch: Epoch) -> None:
        if epoch.val is not None:
            self.scores.append(epoch.val)


def measured(graph: Path, seed: int, settings: dict[str, Any]) -> dict[str, Any]:
    """One run: scores of the model and of the rules by name, CPU seconds of training, epochs."""
    given = {"predict": f"{RELATION}.rating", "graph": graph, "split_column": "split_u1"}
    found = build(Settings, with_usual(given | {"split_seed": seed, "seed": seed} | settings))
    opened = found.open_graph().graph
    pairs = opened.pairs
    assert pairs is not None
    start, curve = time.process_time(), Curve()
    job = found.prepare(opened)
    result = job.train(curve)
    seconds = time.process_time() - start
    decoder: Any = job.model.decoder
    embeddings = predict(job.model, opened, kind="all")
    scorers: dict[str, ValueScorer] = {"model": EmbeddedValues(decoder, embeddings, pairs)}
    return {
        "scores": {
            name: {split: score_values(scorer, pairs, split) for split in ("val", "test")}
            for name, scorer in (scorers | value_rules(pairs)).items()
        },
        "cpu_seconds": seconds,
        "epoch": result.epoch,
        "curve": curve.scores,
        "estimator": job.config.estimator,
    }


def told(values: list[float]) -> str:
    """Return the mean and the standard deviation."""
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{statistics.mean(values):.4f} ± {deviation:.4f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--settings", type=json.loads, default={}, help="as JSON, by name")
    parser.add_argument("--val-only", action="store_true", help="keep test scores out of sight")
    parser.add_argument("--out", type=Path, help="JSON file of all runs")
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        graph = imported(Path(folder) / "movies")
        runs = [measured(graph, seed, options.settings) for seed in range(options.seeds)]
    for name in runs[0]["scores"]:
        for split in ("val",) if options.val_only else ("val", "test"):
            row = [told([run["scores"][name][split][key] for run in runs]) for key in NAMES]
            print(f"{name}  {split}  RMSE {row[0]}  MAE {row[1]}")
    for name, score in PUBLISHED.items():
        print(f"{name}, published  test  RMSE {score:.3f}")
    seconds = statistics.mean(run["cpu_seconds"] for run in runs)
    print(f"validation RMSE by epoch: {' '.join(f'{v:.3f}' for v in runs[0]['curve'])}")
    print(f"kept epochs {[run['epoch'] for run in runs]}, {seconds:.1f} CPU seconds a run")
    if options.out is not None:
        options.out.write_text(json.dumps(runs, indent=1) + "\n")


if __name__ == "__main__":
    main()
