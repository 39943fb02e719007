"""Partitions: few edges between parts, equal shares of edges and of training nodes."""

from __future__ import annotations

import sys
import tracemalloc

import pytest
import torch

from tests.messages import refused
from vrgcn.data.store import load_graph, save_graph
from vrgcn.graph import partition as module
from vrgcn.graph.graph import Graph
from vrgcn.graph.partition import partition

pytest.importorskip("pymetis")
METHODS = ("metis", "ldg")


def blocks(
    count: int, size: int, across: int, *, directed: bool = False, shuffled: bool = True
) -> tuple[Graph, torch.Tensor]:
    """Random graphs of degree 8 beside each other and a few edges across; the block of each node.

    The first half of the blocks has all training nodes: equal numbers of nodes do not balance them.
    """
    draw = torch.Generator().manual_seed(0)
    nodes = count * size
    inside = torch.randint(size, (2, 4 * nodes), generator=draw)
    inside += torch.arange(nodes).repeat(4).div(size, rounding_mode="floor") * size
    edges = torch.cat([inside, torch.randint(nodes, (2, across), generator=draw)], dim=1)
    place = torch.randperm(nodes, generator=draw) if shuffled else torch.arange(nodes)
    block = torch.empty(nodes, dtype=torch.int64)
    block[place] = torch.arange(nodes).div(size, rounding_mode="floor")
    train = (block < count // 2).nonzero()[:, 0]
    labels = torch.zeros(nodes, dtype=torch.int64)
    return (
        Graph(place[edges], torch.zeros(nodes, 1), labels, train=train, undirected=not directed),
        block,
    )


def cut(graph: Graph, parts: torch.Tensor) -> float:
    """The share of the edges whose ends lie in different parts."""
    sources, targets = parts[graph.edge_index()]
    return float((sources != targets).double().mean())


def imbalance(loads: torch.Tensor) -> float:
    """The largest load over an equal share."""
    return float(loads.max() / loads.double().mean())


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_blocks_are_found_and_both_kinds_of_work_balanced(method, directed):
    graph, _ = blocks(16, 200, 400, directed=directed)
    parts = partition(graph, 4, method)
    assert sorted(parts.unique().tolist()) == [0, 1, 2, 3]
    assert cut(graph, parts) < 0.25  # 0.75 by chance
    edges = torch.bincount(parts, weights=graph.adjacency.counts.double())
    assert imbalance(edges) <= 1 + module.SLACK + 0.01
    assert imbalance(torch.bincount(parts[graph.train], minlength=4)) <= 1 + module.SLACK + 0.01


@pytest.mark.parametrize("method", METHODS)
def test_the_same_graph_has_the_same_parts(method):
    graph, _ = blocks(4, 100, 50)
    assert torch.equal(partition(graph, 3, method), partition(graph, 3, method))


def test_a_stream_tells_how_far_it_is():
    graph, _ = blocks(4, 100, 50)
    told: list[float] = []
    parts = partition(graph, 3, "ldg", tell=told.append)
    assert torch.equal(parts, partition(graph, 3, "ldg"))
    assert 0 < told[0] < 1 / 20  # a batch of the first of ten passes
    assert told == sorted(told)
    assert told[-1] <= 1
    # Every pass is told to its end; the last ones may not be needed.
    assert round(told[-1] * 10, 9) in range(1, 11)


def test_numbers_that_follow_the_graph_are_kept_in_runs():
    nodes = 4000
    path = torch.stack([torch.arange(nodes - 1), torch.arange(1, nodes)])
    graph = Graph(path, torch.zeros(nodes, 1), undirected=True)
    assert cut(graph, partition(graph, 8, "ldg")) < 0.02


def test_a_hub_larger_than_a_part_finds_a_place():
    spokes = torch.stack([torch.zeros(99, dtype=torch.int64), torch.arange(1, 100)])
    graph = Graph(spokes, torch.zeros(100, 1), undirected=True)
    for method in METHODS:
        parts = partition(graph, 8, method)
        assert parts.min() >= 0
        assert len(parts.unique()) == 8


def test_ldg_of_a_mapped_graph_is_the_same_and_copies_no_edges(tmp_path):
    graph, _ = blocks(8, 1000, 2000)
    save_graph(graph, tmp_path / "graph")
    mapped = load_graph(tmp_path / "graph")
    partition(mapped, 8, "ldg")  # imports
    tracemalloc.start()
    parts = partition(mapped, 8, "ldg")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert torch.equal(parts, partition(graph, 8, "ldg"))
    per_node = peak / graph.num_nodes
    assert per_node < 8 * graph.num_edges / graph.num_nodes


def test_auto_is_ldg_where_metis_does_not_fit_or_is_missing(monkeypatch):
    graph, _ = blocks(4, 100, 50)
    ldg = partition(graph, 4, "ldg")
    monkeypatch.setattr(module, "free_memory", lambda: 1000)
    assert torch.equal(partition(graph, 4), ldg)
    monkeypatch.undo()
    assert torch.equal(partition(graph, 4), partition(graph, 4, "metis"))
    monkeypatch.setitem(sys.modules, "pymetis", None)
    assert torch.equal(partition(graph, 4), ldg)
    with refused(ImportError):
        partition(graph, 4, "metis")


def test_one_part_is_all_nodes_and_too_many_are_refused():
    graph, _ = blocks(2, 10, 2)
    assert not partition(graph, 1).any()
    with refused():
        partition(graph, 21)
    with refused():
        partition(graph, 0)
    with refused():
        partition(graph, 2, "random")  # type: ignore[arg-type]
