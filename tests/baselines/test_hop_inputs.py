"""Columns of trees and perceptrons: their formulas, and what they are made of."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from tests.baselines.problems import small
from vrgcn.baselines import hop_inputs as module
from vrgcn.baselines.hop_inputs import HopInputs, column_weights, fit_inputs
from vrgcn.baselines.perceptron import fit_perceptron
from vrgcn.baselines.problem import Problem
from vrgcn.graph.blocks import Blocks
from vrgcn.graph.forms import row_lengths
from vrgcn.graph.graph import Graph
from vrgcn.inference.predict import predict


def parts(graph: Graph) -> tuple[Tensor, Tensor, Tensor]:
    """A, D^-1 A and training labels as columns with a mark, dense."""
    A = graph.adjacency.to_torch(torch.float64).to_dense()
    P = A / A.sum(1, keepdim=True).clamp(min=1)
    known = torch.zeros(graph.num_nodes, graph.num_classes + 1, dtype=torch.float64)
    known[graph.train, graph.labels[graph.train]] = 1
    known[graph.train, -1] = 1
    return A, P, known


def test_columns_are_the_formulas_of_dense_matrices() -> None:
    graph = small()
    inputs, rows = fit_inputs(Problem.of(graph), 2, tables=True)
    x, (A, P, known) = graph.features.double(), parts(graph)
    assert inputs.columns == rows.shape[1] == 3 * 6 + 1 + 2 * 6 + 2 * 4 + 32 + 1
    found = (rows / inputs.scale + inputs.mean).double()
    degree = A.sum(1, keepdim=True)
    wanted = torch.cat([x, P @ x, P @ P @ x, degree.log1p()], dim=1)
    torch.testing.assert_close(found[:, :19], wanted, rtol=1e-4, atol=1e-4)
    PP = P @ P
    PP.fill_diagonal_(0)  # without the way back to a node itself
    for start, sums in ((31, A @ known), (35, degree * (PP @ known))):
        shares = sums[:, :-1] / sums[:, -1:].clamp(min=1e-9)
        torch.testing.assert_close(found[:, start : start + 3], shares, rtol=0, atol=5e-4)
        torch.testing.assert_close(found[:, start + 3], sums[:, -1].log1p(), rtol=0, atol=5e-4)
    S = A / ((1 + degree) * (1 + degree).t()).sqrt()
    values = torch.linalg.svd(S)[1][:8]
    assert torch.allclose(found[:, 39:47].norm(dim=0) / 240**0.5, values, rtol=0.03)


def test_soft_extremes_lie_within_the_logarithm_of_the_degree_beside_the_true_ones() -> None:
    graph = small()
    graph = Graph(
        graph.edge_index()[:, 40:], graph.features, graph.labels, train=graph.train, val=graph.val
    )
    inputs, rows = fit_inputs(Problem.of(graph), 2, tables=True)
    assert inputs.extremes == 1
    found = (rows / inputs.scale + inputs.mean)[:, 19:31]
    train = graph.features[graph.train]
    z = ((graph.features - train.mean(0)) / train.std(0, correction=0)).clamp(-5, 5)
    A = graph.adjacency.to_torch(torch.float64).to_dense() > 0
    for node in range(240):
        mine = z[A[node]]
        high, low = found[node].chunk(2)
        if not len(mine):
            assert not found[node].abs().max() > 1e-4
            continue
        room = math.log(len(mine)) / 8 + 1e-3
        assert bool((high >= mine.max(0)[0] - 1e-3).all())
        assert bool((high <= mine.max(0)[0] + room).all())
        assert bool((low <= mine.min(0)[0] + 1e-3).all())
        assert bool((low >= mine.min(0)[0] - room).all())


@pytest.mark.parametrize("undirected", [False, True])
def test_page_ranks_solve_their_equation(undirected: bool) -> None:
    graph = small()
    edges = graph.edge_index()[:, :: 1 if undirected else 3]
    graph = Graph(edges, graph.features, graph.labels, train=graph.train, val=graph.val)
    inputs, rows = fit_inputs(Problem.of(graph), 2, tables=True)
    A = graph.adjacency.to_torch(torch.float64).to_dense()
    shares = A / A.sum(0).clamp(min=1)
    wanted = torch.linalg.solve(torch.eye(240) - 0.85 * shares, torch.full((240,), 0.15).double())
    found = (rows / inputs.scale + inputs.mean)[:, -1].double().exp()
    torch.testing.assert_close(found, wanted, rtol=5e-3, atol=1e-3)


def test_extremes_are_taken_of_few_dense_columns(monkeypatch) -> None:
    assert fit_inputs(Problem.of(small()), 2, tables=False)[0].extremes == 0
    assert fit_inputs(Problem.of(small(sparse=True)), 2, tables=True)[0].extremes == 0
    monkeypatch.setattr(module, "_MOST_EXTREMES", 5)
    assert fit_inputs(Problem.of(small()), 2, tables=True)[0].extremes == 0


@pytest.mark.parametrize("loops", [False, True])
@pytest.mark.parametrize("undirected", [False, True])
def test_the_own_label_of_a_node_is_in_none_of_its_columns(loops: bool, undirected: bool) -> None:
    """Every bit of a training node's row stays if its own label is another one."""
    graph = small()
    edges = graph.edge_index()[:, :: 1 if undirected else 3]
    if loops:
        edges = torch.cat([edges, torch.arange(240).expand(2, -1)], dim=1)
    splits = {"train": graph.train, "val": graph.val}
    node = int(graph.train[5])
    other = graph.labels.clone()
    other[node] = (other[node] + 1) % 3
    found = []
    for labels in (graph.labels, other):
        changed = Graph(edges, graph.features, labels, **splits)
        inputs, _ = fit_inputs(Problem.of(changed), 2, tables=True)
        assert inputs.label_hops == (2 if undirected else 1)
        found.append(inputs.unscaled(changed.features, Problem.of(changed).propagate))
    assert torch.equal(found[0][node], found[1][node])
    assert not torch.equal(found[0], found[1])  # its neighbours know


def test_a_graph_of_weights_has_shares_of_one_hop() -> None:
    graph = small()
    weight = torch.rand(graph.num_edges, generator=torch.Generator().manual_seed(0)) + 0.5
    weighted = Graph(
        graph.edge_index(), graph.features, graph.labels, edge_weight=weight,
        train=graph.train, val=graph.val,
    )  # fmt: skip
    assert fit_inputs(Problem.of(weighted), 2, tables=True)[0].label_hops == 1


def test_wide_features_are_projected_in_any_layout(monkeypatch) -> None:
    monkeypatch.setattr(module, "WIDEST", 5)
    monkeypatch.setattr(module, "COMPONENTS", 4)
    graph = small(sparse=True)
    x = graph.features.to_dense()
    layouts = (
        graph.features,
        x,
        Blocks.beside([x[:, :2].to_sparse_csr(), x[:, 2:].to_sparse_csr()]),
    )
    found = []
    for features in layouts:
        inputs, rows = fit_inputs(Problem.of(graph.with_features(features)), 2, tables=False)
        assert inputs.components == 4
        assert rows.shape[1] == 13
        weighted = x * inputs.weights
        length = torch.where(weighted.norm(dim=1) > 0, weighted.norm(dim=1), 1)[:, None]
        torch.testing.assert_close(row_lengths(features, inputs.weights), length)
        torch.testing.assert_close(inputs.narrow(features), x @ inputs.projection / length)
        found.append(rows)
    torch.testing.assert_close(found[1], found[0], rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(found[2], found[0], rtol=1e-3, atol=1e-3)


def test_rare_columns_weigh_more() -> None:
    x = torch.zeros(100, 3)
    x[:50, 0], x[:10, 1] = 2.0, -1.0
    wanted = torch.tensor([2.0, 10.0, 100.0]).log()
    torch.testing.assert_close(column_weights(x), wanted)
    torch.testing.assert_close(column_weights(x.to_sparse_csr()), wanted)
    assert torch.equal(column_weights(torch.ones(5, 2)), torch.ones(2))
    torch.testing.assert_close(
        column_weights(torch.ones(5, 2).to_sparse_csr()), torch.full((2,), 0.1)
    )
    both = Blocks.beside([torch.ones(100, 2), x.to_sparse_csr()])
    torch.testing.assert_close(column_weights(both), torch.cat([torch.ones(2), wanted]))


def test_parts_are_made_once_for_all_baselines_of_a_problem(monkeypatch) -> None:
    problem = Problem.of(small())
    first = fit_inputs(problem, 2, tables=True)
    monkeypatch.setattr(module, "_fit", None)
    assert fit_inputs(problem, 2, tables=True) is first


def test_a_perceptron_learns_what_two_hops_tell_and_nothing_from_labels_without_sense() -> None:
    graph = small(nodes=600)
    for tables in (False, True):
        outputs = predict(fit_perceptron(Problem.of(graph), 2, tables=tables), graph)
        correct = (outputs.argmax(1) == graph.labels)[graph.test]
        assert correct.float().mean() > 0.9
    generator = torch.Generator().manual_seed(0)
    graph = small(labels=torch.randint(0, 3, (240,), generator=generator))
    outputs = predict(fit_perceptron(Problem.of(graph), 2, tables=True), graph)
    assert (outputs.argmax(1) == graph.labels)[graph.test].float().mean() < 0.5


def test_a_graph_with_very_many_outputs_has_no_labels_in_its_columns(monkeypatch) -> None:
    monkeypatch.setattr(module, "_MOST_LABELS", 2)
    inputs, _ = fit_inputs(Problem.of(small()), 2, tables=True)
    assert (inputs.label_hops, inputs.spectral) == (0, 32)
    assert HopInputs(6, 3, **inputs.arguments).columns == inputs.columns
