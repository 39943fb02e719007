"""A small graph whose classes are easy to tell, and records that are made up."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from vrgcn import Graph

NODES = 60


@pytest.fixture(scope="session")
def small() -> Graph:
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


def made_up(
    graph: str, row: str, kind: str, tests: list[float], **others: Any
) -> list[dict[str, Any]]:
    """Records of one row on one graph, a split each."""
    return [
        {"graph": graph, "row": row, "kind": kind, "split": split, "test": test}
        | {"cpu_seconds": 2.0, "version": "0.1.0, commit 1a2b3c4 of 2026-11-18", **others}
        for split, test in enumerate(tests)
    ]


@pytest.fixture
def records() -> list[dict[str, Any]]:
    """Two graphs: on the first the search is above the best baseline, on the second below."""
    found = {
        "single": {"name": "trial 0", "test": 0.88},
        "network": {"name": "trial 0", "test": 0.88},
        "baseline": {"name": "linear", "test": 0.5},
        "limit": "3m",
    }
    return [
        *made_up("cora", "default", "default", [0.86, 0.87, 0.88]),
        *made_up("cora", "baseline linear", "baseline", [0.50, 0.60, 0.70]),
        *made_up("cora", "baseline trees", "baseline", [0.80, 0.82, 0.84]),
        *made_up("cora", "two-way", "estimator", [0.90, 0.90, 0.90]),
        *made_up("cora", "two-way, last weights", "estimator", [0.85, 0.90, 0.92]),
        *made_up("cora", "tune", "tune", [0.90, 0.93, 0.93], **found),
        *made_up("tolokers", "baseline linear", "baseline", [0.75, 0.75, 0.75]),
        *made_up("tolokers", "default", "default", [0.74] * 10),
        *made_up("tolokers", "tune", "tune", [0.70, 0.72, 0.74], **found),
    ]
