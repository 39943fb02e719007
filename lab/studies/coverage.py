"""What calibration promises, and what test nodes show: coverage of prediction sets, and scores of
probabilities and labels with and without it, on real graphs.

    python -m lab.studies.coverage --graphs tolokers facebook_large pubmed

Each split trains the usual model settings for some epochs, keeps the best on the
validation nodes, and calibrates it on the same validation nodes as a run does. Coverage and errors
are of test nodes, which none of this has seen.
"""

from __future__ import annotations

import argparse
import sys

import torch

from lab.league.real_graphs import GRAPHS, Entry, data_folder, entry_of, load
from vrgcn.inference.predict import predict
from vrgcn.inference.saved import SavedModel
from vrgcn.pages.trust import Trust, trust_of
from vrgcn.runs.settings import Settings
from vrgcn.runs.stages import calibrate_run
from vrgcn.training.config import TrainConfig


def measured(entry: Entry, epochs: int, seed: int) -> Trust:
    """Train and calibrate on a graph; return what the calibration does on its test nodes."""
    graph = entry.graph
    config = TrainConfig(metric=entry.asked, threads=1, seed=seed, epochs=epochs)
    job = Settings(train=config).prepare(graph)
    job.train()
    saved = calibrate_run(SavedModel.of(job.model), graph, "always", lambda _: None)
    assert graph.labels is not None
    outputs = predict(saved, graph, kind="all")
    trust = trust_of(saved, graph, outputs, graph.labels, graph.test)
    assert trust is not None
    return trust


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def lines(name: str, nodes: int, found: list[Trust]) -> list[str]:
    """What the splits of a graph show, on average."""
    temperatures = ", ".join(f"{t.temperature:.3g}" for t in found)
    text = [f"{name}: {len(found)} splits, {nodes:,} test nodes, temperatures {temperatures}"]
    scores = [t.as_dict() for t in found]
    for score in ("log_loss", "brier", "calibration_error"):
        after, before = (mean([s[score + end] for s in scores]) for end in ("", "_before"))
        text.append(f"  {score}: {after:.4f} ({before:.4f} before)")
    chosen = [t.threshold for t in found if t.threshold is not None]
    if chosen:
        thresholds = ", ".join(f"{t.threshold:.3f}" for t in chosen)
        text.append(
            f"  F1 from the thresholds {thresholds} on: {mean([t.f1 for t in chosen]):.4f} "
            f"({mean([t.plain_f1 for t in chosen]):.4f} from 0.5 on)"
        )
    for promised in found[0].coverage:
        shares = [t.coverage[promised].share for t in found]
        size = mean([t.coverage[promised].size for t in found])
        text.append(
            f"  promised {promised:g}: {mean(shares):.3f} (from {min(shares):.3f} to "
            f"{max(shares):.3f}), {size:.2f} classes in a set"
        )
    groups = [group for t in found for group in t.groups]
    worst = min(groups, key=lambda group: group.share)
    text.append(
        f"  of {found[0].promised:g} promised, the least in a class or group of degrees: "
        f"{worst.share:.3f} ({worst.name}, {worst.nodes:,} nodes)"
    )
    return text


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m lab.studies.coverage")
    parser.add_argument(
        "--graphs", nargs="+", choices=GRAPHS, default=["tolokers", "facebook_large"]
    )
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=15)
    given = parser.parse_args()
    folder = data_folder()
    if folder is None:
        sys.exit("the real graphs are not here: name their folder by VRGCN_DATA")
    torch.set_num_threads(1)
    for name in given.graphs:
        entries = [entry_of(name, load(name, split, folder)) for split in range(given.splits)]
        found = [measured(entry, given.epochs, seed) for seed, entry in enumerate(entries)]
        print("\n".join(lines(name, len(entries[0].graph.test), found)), flush=True)


if __name__ == "__main__":
    main()
