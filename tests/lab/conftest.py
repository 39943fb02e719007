"""A tiny graph and a bench that measures on it."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from lab.bench.bench import Bench
from lab.bench.scale import QUICK, QUICK_GRAPH
from vrgcn.data.synthetic import community_graph
from vrgcn.graph.graph import Graph


@pytest.fixture(scope="session")
def graph() -> Graph:
    return community_graph(QUICK_GRAPH)


@pytest.fixture
def bench(graph: Graph, tmp_path: Path) -> Bench:
    return Bench(graph, QUICK, 1, Console(), tmp_path)
