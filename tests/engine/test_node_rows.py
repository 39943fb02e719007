"""`propagate.nodes`, `propagate.degrees` and `propagate.table`."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.messages import refused
from tests.theory.problems import FEATURES, dense_matrix, double_minibatches, random_graph
from vrgcn import Graph, MiniBatches, predict
from vrgcn.engine.node_rows import GraphRows, LonelyRows
from vrgcn.graph.propagation import build_propagation

GRAPH = random_graph()
CPU = torch.device("cpu")


def rows_of(rule: str, *levels: Tensor) -> GraphRows:
    return GraphRows(levels, {None: build_propagation(rule, GRAPH)}, CPU)


def others(rule: str) -> Tensor:
    """The dense matrix without its diagonal."""
    P = dense_matrix(GRAPH, rule)
    return P - torch.diag(P.diag())


@pytest.mark.parametrize("rule", ["gcn", "mean"])
def test_average_is_the_dense_product_without_the_nodes_own_row(rule: str) -> None:
    nodes = torch.tensor([5, 0, 31])
    table = torch.randn(GRAPH.num_nodes, 4, dtype=torch.float64)
    found = rows_of(rule, nodes).average(0, table, None)
    assert torch.allclose(found, others(rule)[nodes] @ table, atol=1e-12, rtol=0)


@pytest.mark.parametrize("rule", ["gcn", "mean"])
def test_the_second_hop_is_the_dense_product_without_its_diagonal(rule: str) -> None:
    """Directed edges, some of them both ways, several times and from a node to itself."""
    draw = torch.Generator().manual_seed(0)
    edges = torch.randint(25, (2, 150), generator=draw)
    graph = Graph(edges, torch.zeros(25, 1, dtype=torch.float64))
    N = dense_matrix(graph, rule).fill_diagonal_(0)
    twice = N @ N
    assert (twice.diag() > 0).any()
    assert (twice.diag() == 0).any()
    nodes = torch.tensor([5, 0, 24, 7, 11, 3])
    table = torch.randn(25, 4, dtype=torch.float64, generator=draw)
    rows = GraphRows([nodes], {None: build_propagation(rule, graph)}, CPU)
    expected = twice.fill_diagonal_(0)[nodes] @ table
    assert torch.allclose(rows.second(0, table, None), expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize("rule", ["gcn", "mean"])
def test_a_nodes_own_row_changes_nothing_in_its_second_hop(rule: str) -> None:
    """To the bit, in float32: for each node in turn, and for a pair that has no other nodes."""
    edges = torch.cat([GRAPH.edge_index(), torch.tensor([[0, 1], [1, 0]]) + GRAPH.num_nodes], 1)
    count = GRAPH.num_nodes + 2
    graph = Graph(edges, torch.zeros(count, 1), undirected=True)
    P = build_propagation(rule, graph)
    draw = torch.Generator().manual_seed(0)
    table = torch.nn.functional.one_hot(torch.randint(3, (count,), generator=draw), 3).float()
    moved = 0
    for node in range(count):
        other = table.clone()
        other[node] = other[node].roll(1)
        rows = GraphRows([torch.arange(count)], {None: P}, CPU)
        before, after = rows.second(0, table, None), rows.second(0, other, None)
        assert torch.equal(before[node], after[node])
        moved += int((before != after).any())
    assert moved > count // 2


def test_degrees_count_the_other_nodes() -> None:
    nodes = torch.arange(GRAPH.num_nodes)
    degrees = rows_of("mean", nodes).degrees(0, None)
    assert degrees.tolist() == (others("mean") != 0).sum(1).tolist()


@pytest.mark.parametrize("rule", ["gcn", "mean"])
def test_the_gradient_of_a_table_is_sparse_and_equals_the_dense_one(rule: str) -> None:
    nodes = torch.tensor([5, 0, 31, 7])
    table = torch.randn(GRAPH.num_nodes, 3, dtype=torch.float64, requires_grad=True)
    weights = torch.randn(4, 3, dtype=torch.float64)
    (rows_of(rule, nodes).average(0, table, None) * weights).sum().backward()
    assert table.grad is not None
    assert table.grad.is_sparse
    expected = others(rule)[nodes].T @ weights
    assert torch.allclose(table.grad.to_dense(), expected, atol=1e-12, rtol=0)
    read = (others(rule)[nodes] != 0).any(0).nonzero()[:, 0]
    assert table.grad.coalesce().indices()[0].tolist() == read.tolist()


def test_a_table_that_is_computed_has_a_gradient_too() -> None:
    nodes = torch.tensor([1, 2])
    table = torch.randn(GRAPH.num_nodes, 3, dtype=torch.float64, requires_grad=True)
    rows_of("mean", nodes).average(0, table * 2, None).sum().backward()
    expected = 2 * others("mean")[nodes].T @ torch.ones(2, 3, dtype=torch.float64)
    assert table.grad is not None
    assert torch.allclose(table.grad, expected, atol=1e-12, rtol=0)


def test_a_table_of_another_size_is_refused() -> None:
    with refused():
        rows_of("mean", torch.tensor([1])).average(0, torch.zeros(59, 2), None)


def test_lonely_rows_have_no_neighbours() -> None:
    rows = LonelyRows([3, 2], CPU)
    assert rows.ids(1).shape == (2,)
    assert rows.degrees(0, None).tolist() == [0, 0, 0]
    assert rows.average(1, torch.ones(9, 4), None).tolist() == torch.zeros(2, 4).tolist()


class Asking(nn.Module):
    """Keeps the ids that it is told of, at each level."""

    propagation = "mean"

    def __init__(self) -> None:
        super().__init__()
        self.last = nn.Linear(FEATURES, 2).double()
        self.asked: list[Tensor] = []

    def forward(self, x: Tensor, propagate: Any) -> Tensor:
        self.asked = [propagate.nodes]
        for _ in range(2):
            x = torch.tanh(propagate(x))
            self.asked.append(propagate.nodes)
        out: Tensor = self.last(x)
        return out


@pytest.mark.parametrize("estimator", ["exact", "ns", "cv", "cvd", "history", "two-way"])
def test_a_model_is_told_the_nodes_of_each_level(estimator: str) -> None:
    model = Asking()
    batches = double_minibatches(model, GRAPH, estimator=estimator, nodes="all", preprocess=False)
    batch = batches.batch(torch.tensor([4, 9, 2]))
    batch.run(model)
    for told, level in zip(model.asked, batch.plan.levels, strict=True):
        assert torch.equal(told, level.nodes)
    batch.discard()


def test_sweeps_tell_the_nodes_of_a_chunk() -> None:
    model = Asking()
    predict(model, GRAPH, [7, 3])
    assert [told.tolist() for told in model.asked] == [[7, 3]] * 3


def test_minibatches_need_no_rows_where_a_model_does_not_ask() -> None:
    model = Asking()
    batches = MiniBatches(model, GRAPH, estimator="exact", nodes="all", history_dtype="float64")
    assert len(list(batches)) == len(batches)
