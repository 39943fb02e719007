"""Searches and runs on graphs whose test rows are other ones: they must not notice.

Labels of test nodes and values of test pairs are dealt anew, test pairs and triples are other ones.
A search and a run of each kind choose the same and end in the same bits. If labels of training are
dealt anew, the test is scored by chance. `tests/runs/test_held_out.py` tries one seed of each.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tests.baselines.problems import small
from vrgcn import Graph, load_model, train, tune
from vrgcn.models.config import ModelConfig
from vrgcn.training.config import TrainConfig

TRIALS = 12
NODES = 24
SETTINGS: dict[str, Any] = {"epochs": 3, "batch_size": 32, "hidden": 4}
EMBEDDED = {**SETTINGS, "embedding": 4, "split_column": "part"}


def labels(seed: int, split: str = "test") -> Graph:
    """A graph whose labels of a split are dealt anew by a seed above 0."""
    graph = small(nodes=120)
    assert graph.labels is not None
    own = graph.split(split)
    order = torch.randperm(len(own), generator=torch.Generator().manual_seed(seed))
    changed = graph.labels.clone()
    changed[own] = changed[own][order] if seed else changed[own]
    splits = {name: graph.split(name) for name in ("train", "val", "test")}
    return small(nodes=120, labels=changed, **splits)


def _edges(draw: torch.Generator, other: torch.Generator) -> tuple[Tensor, list[str]]:
    """Training and validation edges by one generator, test edges by another."""
    places = torch.randperm(NODES * NODES, generator=draw)
    own, rest = places[:150], places[150:]
    test = rest[torch.randperm(len(rest), generator=other)[:30]]
    edges = torch.cat([own, test])
    parts = ["train"] * 120 + ["val"] * 30 + ["test"] * 30
    return torch.stack([edges // NODES, edges % NODES]), parts


def pairs(seed: int) -> Graph:
    edges, parts = _edges(torch.Generator().manual_seed(0), torch.Generator().manual_seed(seed))
    liked = ("user", "liked", "item")
    return Graph.from_kinds(
        {"user": NODES, "item": NODES}, {liked: edges}, edge_columns={liked: {"part": parts}}
    )


def values(seed: int) -> Graph:
    own = torch.Generator().manual_seed(0)
    edges, parts = _edges(own, torch.Generator().manual_seed(1))
    rated = torch.randint(1, 6, (180,), generator=own).double()
    test = torch.randint(1, 6, (30,), generator=torch.Generator().manual_seed(seed))
    rated[150:] = test.double()
    liked = ("user", "liked", "item")
    columns = {"part": parts, "rating": rated.tolist()}
    return Graph.from_kinds(
        {"user": NODES, "item": NODES}, {liked: edges}, edge_columns={liked: columns}
    )


def triples(seed: int) -> Graph:
    own, other = torch.Generator().manual_seed(0), torch.Generator().manual_seed(seed)
    found = {("x", name, "x"): _edges(own, other) for name in ("r", "s")}
    return Graph.from_kinds(
        {"x": NODES},
        {triple: edges for triple, (edges, _) in found.items()},
        edge_columns={triple: {"part": parts} for triple, (_, parts) in found.items()},
    )


def trained(graph: Graph, **settings: Any) -> tuple[float | None, dict[str, Tensor]]:
    """The validation score and the weights of a run."""
    with tempfile.TemporaryDirectory() as name:
        run = train(graph, out=Path(name) / "run", seed=1, **settings)
        assert run.result is not None
        return run.result["val"], load_model(Path(name) / "run").model.state_dict()


def searched(graph: Graph) -> tuple[list[object], dict[str, Tensor]]:
    """What a search tried and scored, and the weights of its best model."""
    config = TrainConfig(epochs=2, batch_size=40, estimator="exact", diagnostics=0)
    model = ModelConfig(hidden=4)
    found = tune(graph, model, config, trials=2, baselines=("labels", "linear"))
    tried = [(trial.name, trial.values, trial.val) for trial in (*found.baselines, *found.trials)]
    return [*tried, found.best.name], found.model.state_dict()


CASES: dict[str, Callable[[int], tuple[Any, dict[str, Tensor]]]] = {
    "labels": lambda seed: trained(labels(seed), **SETTINGS),
    "searches": lambda seed: searched(labels(seed)),
    "pairs": lambda seed: trained(pairs(seed), predict="user-liked-item", metric="mrr", **EMBEDDED),
    "values": lambda seed: trained(values(seed), predict="user-liked-item.rating", **EMBEDDED),
    "triples": lambda seed: trained(
        triples(seed), predict="relations", model="gcn", layers=1, **EMBEDDED
    ),
}


def check_same(name: str, one: int, other: int) -> None:
    """Check that a run does not notice that its test rows are those of another seed."""
    (score, weights), (again, others) = CASES[name](one), CASES[name](other)
    assert score == again, (name, one, other, score, again)
    assert weights.keys() == others.keys(), (name, one, other)
    for part, tensor in weights.items():
        assert torch.equal(tensor, others[part]), (name, one, other, part)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--trials", type=int, default=TRIALS)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    draw = random.Random(asked.seed)
    for name in CASES:
        for _ in range(asked.trials):
            check_same(name, draw.randrange(1, 10**6), draw.randrange(1, 10**6))
        print(f"{asked.trials:6} twice: {name} in the same bits", flush=True)


if __name__ == "__main__":
    sys.exit(main())
