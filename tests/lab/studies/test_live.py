"""The study of live changes measures what it says, and compares exact answers."""

from __future__ import annotations

from argparse import Namespace

import pytest
import torch

from lab.studies.live import Work, hub_pairs, measured
from vrgcn.graph.graph import Graph


@pytest.fixture
def graph() -> Graph:
    generator = torch.Generator().manual_seed(0)
    return Graph(
        torch.randint(0, 200, (2, 500), generator=generator),
        torch.randn(200, 6, generator=generator),
        torch.arange(200) % 3,
        undirected=True,
        train=range(100),
    )


@pytest.mark.parametrize("kind", ["GraphSAGE", "GCN"])
def test_every_sort_of_work_is_done_as_often_as_asked(graph: Graph, kind: str) -> None:
    given = Namespace(reads=5, adds=3, hubs=2, peers=2)
    works = dict(measured(graph, kind, given))
    counts = {name: len(work.seconds) for name, work in works.items()}
    assert counts["read a known node"] == 5
    assert counts["add a node with 10 edges, and read it"] == 3
    assert counts["add an edge between two hubs"] == 2
    first, last = works["add a node with 10 edges, and read it"].rows[0]
    assert 11 <= first < last <= 201  # itself and ten neighbours at least, then theirs
    asked = [count for name, count in counts.items() if "node" in name and "PyG" in name]
    assert asked == ([2] * len(asked) if kind == "GraphSAGE" else [])


def test_hubs_are_not_linked_yet(graph: Graph) -> None:
    counts = graph.adjacency.counts
    for one, other in hub_pairs(graph, 3):
        assert other not in graph.adjacency.rows(torch.tensor([one])).indices
        assert counts[one] > counts.double().mean()


def test_a_work_is_told_by_its_median_and_its_99th_percentile() -> None:
    work = Work([0.001 * n for n in range(1, 102)], [(1, 5), (3, 7), (2, 9)])
    assert str(work) == "51 | 100"
    assert work.typical_rows == "2, 7"
