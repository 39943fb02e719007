"""Breaks rules against leaks by hand, and prints what the test score gains: MovieLens-100k by time.

    .venv/bin/python -m lab.studies.leaks --seeds 2

Ratings until February 1998 train, those of March validate, later ones are the test. Each rule is
broken alone. A leak looks like a better model: its score says nothing about tomorrow's ratings.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from lab.studies.ratings import RELATION, imported
from vrgcn import Graph, load_graph
from vrgcn.graph.scaling import scale_graph, suitable_scaling
from vrgcn.runs.config_file import build
from vrgcn.runs.racing import raced
from vrgcn.runs.settings import Settings
from vrgcn.targets.pair_split import split_pairs, visible_graph
from vrgcn.targets.spec import with_usual

Break = Callable[[Graph, Graph], Graph]


def kept(whole: Graph, split: Graph) -> Graph:
    """All rules are kept."""
    return split


def later_edges(whole: Graph, split: Graph) -> Graph:
    """Validation and test pairs, all of them later, carry messages."""
    assert split.pairs is not None
    every = torch.ones(whole.relations[RELATION].num_edges, dtype=torch.bool)
    return visible_graph(whole, split.pairs, {RELATION: every}, only_named=True)


def later_means(whole: Graph, split: Graph) -> Graph:
    """Means of the ratings of all times are features of users and items."""
    return split.with_features(whole.features)


def later_scaling(whole: Graph, split: Graph) -> Graph:
    """The scaling of features knows users and items that come later."""
    return split.with_splits({"train": torch.arange(split.num_nodes)})


BREAKS: dict[str, Break] = {
    "all rules are kept": kept,
    "later edges carry messages": later_edges,
    "means of ratings of all times are features": later_means,
    "the scaling knows nodes that come later": later_scaling,
}


def measured(graph: Path, change: Break, predict: str, seed: int) -> float:
    """The test score of a run."""
    given: dict[str, Any] = {"predict": predict, "graph": graph, "seed": seed}
    found = build(Settings, with_usual(given | {"epochs": 15}))
    whole = load_graph(graph)
    split = split_pairs(whole, predict, train_until="1998-02", val_until="1998-03", seed=seed)
    changed = change(whole, split)
    scaled = scale_graph(changed, suitable_scaling(changed.features))[0]
    _, job, begun = raced(found, scaled)
    result = job.train(begun=begun)
    assert result.test is not None
    return result.test


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        graph = imported(Path(folder) / "movies")
        for name, change in BREAKS.items():
            scores = [
                measured(graph, change, f"{RELATION}.rating", seed) for seed in range(options.seeds)
            ]
            told = ", ".join(f"{score:.4f}" for score in scores)
            print(f"{name}: test RMSE {statistics.mean(scores):.4f} ({told})", flush=True)


if __name__ == "__main__":
    main()
