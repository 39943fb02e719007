"""Columns that tell training nodes from test nodes are found, dates and ordinary columns are
not."""

from __future__ import annotations

import torch

from vrgcn import Graph
from vrgcn.graph.names import Names
from vrgcn.leaks.finding import FULL
from vrgcn.leaks.telling import columns_that_tell_splits

N = 400
EDGES = torch.stack([torch.arange(N), torch.arange(N).roll(1)])


def graph(name: str, filled: bool) -> Graph:
    features = torch.randn(N, 2)
    if filled:
        features[300:, 1] = 50.0
    return Graph(
        EDGES,
        features,
        torch.randint(2, (N,)),
        train=range(300),
        test=range(300, N),
        names=Names(features=["age", name]),
    )


def test_a_column_that_is_filled_in_for_training_nodes_alone_is_found() -> None:
    [finding] = columns_that_tell_splits(graph("score", filled=True), FULL)
    assert "'score'" in finding.text
    assert finding.severity == "medium"


def test_ordinary_columns_and_dates_are_not_found() -> None:
    assert list(columns_that_tell_splits(graph("score", filled=False), FULL)) == []
    assert list(columns_that_tell_splits(graph("joined.seconds", filled=True), FULL)) == []
