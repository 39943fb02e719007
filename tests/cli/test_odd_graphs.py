"""Graphs at the edge of what a graph is: training, prediction and diagnosis work or explain."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.messages import refused
from vrgcn.data.store import save_graph
from vrgcn.graph.graph import Graph

X = torch.randn(30, 4, generator=torch.Generator().manual_seed(0))
Y = torch.arange(30) % 3
RING = torch.stack([torch.arange(30), (torch.arange(30) + 1) % 30])
TWO_RINGS = torch.stack([RING[0], RING[0] // 15 * 15 + (RING[0] + 1) % 15])
SPLIT = {"train": range(18), "val": range(18, 24), "test": range(24, 30)}
LEAVES = 20_000

ODD = {
    "no edges": lambda: Graph([], X, Y, **SPLIT),
    "one node": lambda: Graph([], X[:1], [0], train=[0]),
    "all self-loops": lambda: Graph(torch.arange(30).repeat(2, 1), X, Y, **SPLIT),
    "two parts": lambda: Graph(TWO_RINGS, X, Y, undirected=True, **SPLIT),
    "features of zero": lambda: Graph(RING, torch.zeros(30, 4), Y, **SPLIT),
    "one class": lambda: Graph(RING, X, torch.zeros(30, dtype=torch.int64), **SPLIT),
    "training nodes alone": lambda: Graph(RING, X, Y, train=range(30)),
    "no training nodes": lambda: Graph(RING, X, Y, val=range(15), test=range(15, 30)),
    "no labels": lambda: Graph(RING, X),
    "a star": lambda: Graph(
        torch.stack([torch.zeros(LEAVES, dtype=torch.int64), torch.arange(1, LEAVES + 1)]),
        torch.ones(LEAVES + 1, 2),
        torch.arange(LEAVES + 1) % 2,
        undirected=True,
        train=range(200),
        val=range(200, 300),
    ),
}
EXPLAINED = {  # the others work
    "no training nodes": "no labelled training nodes",
    "no labels": "the graph has no labels",
}


@pytest.mark.parametrize("kind", ODD)
def test_every_command_works_or_explains(kind: str, vrgcn, tmp_path: Path) -> None:
    save_graph(ODD[kind](), tmp_path / "graph")
    assert vrgcn("info", "--graph", "graph", "--verify")[0] == 0
    for model in ("gcn", "graphsage"):
        arguments = ("--graph", "graph", "--epochs", 2, "--model", model, "--hidden", 8)
        code, _, err = vrgcn("train", *arguments, "--out", model)
        if kind in EXPLAINED:
            assert code == 1
            assert EXPLAINED[kind] in err
            continue
        assert code == 0, err
        assert vrgcn("predict", model, "--out", f"{model}.npy")[0] == 0
    if kind not in EXPLAINED:
        code, _, err = vrgcn("diagnose", "graphsage", "--passes", 2, "--compare", "cv")
        assert code == 0 or err.startswith("vrgcn: error:"), err


def test_a_split_without_labels_is_explained() -> None:
    with refused():
        Graph(RING, X, torch.where(RING[0] < 24, Y, -1), **SPLIT)
