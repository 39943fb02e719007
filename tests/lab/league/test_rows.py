"""Rows of the league on a small graph."""

from __future__ import annotations

import pytest
import torch

from lab.league.rows import ROWS, entry_of, run_row
from vrgcn import Graph

NODES = 60


def graph() -> Graph:
    """Two classes whose nodes are linked among themselves, with features that tell them apart."""
    draw = torch.Generator().manual_seed(0)
    labels = torch.arange(NODES) % 2
    edges = torch.randint(NODES // 2, (2, 200), generator=draw) * 2
    edges = torch.cat([edges, edges + 1], dim=1)
    x = torch.randn(NODES, 4, generator=draw) + labels[:, None]
    order = torch.randperm(NODES, generator=draw)
    return Graph(
        edges, x, labels, train=order[:30], val=order[30:45], test=order[45:], undirected=True
    )


@pytest.mark.parametrize("row", ["baseline linear-2", "default", "two-way, last weights"])
def test_a_row_scores_validation_and_test_nodes(row: str) -> None:
    record = run_row(row, entry_of("made up", graph()))
    assert record["val"] > 0.8
    assert record["test"] > 0.8
    assert record["seconds"] > 0


def test_rows_are_baselines_and_networks() -> None:
    assert "default" in ROWS
    assert any(row.startswith("baseline") for row in ROWS)
