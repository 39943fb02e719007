"""Graphs that hypothesis thinks of, with none, one or all edges, loops, isolated nodes, features of
zero: predictions are those of the dense formula in float64, gradients those of autograd."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from tests.theory.full_batch import batch_gradient, full_gradient
from tests.theory.problems import (
    CLASSES,
    FEATURES,
    double_minibatches,
    exact_pass,
    gcn,
    graphsage,
)
from vrgcn import Graph, predict

ROUNDING = 7e-6  # of float32, a few layers deep


@st.composite
def odd_graphs(draw: st.DrawFn) -> Graph:
    """Up to 9 nodes; all edges may be of one node, or from nodes to themselves."""
    nodes = draw(st.integers(1, 9))
    node = st.integers(0, draw(st.integers(0, nodes - 1)))
    pairs = st.tuples(node, node)
    if draw(st.booleans()):
        pairs = node.map(lambda n: (n, n))
    edges = draw(st.lists(pairs, max_size=30))
    weights = None
    if draw(st.booleans()):
        weight = st.sampled_from([0.0, 0.125, 1.0, 40.0])
        weights = draw(st.lists(weight, min_size=len(edges), max_size=len(edges)))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 99)))
    features = torch.randn(nodes, FEATURES, generator=generator, dtype=torch.float64)
    labels = torch.randint(CLASSES, (nodes,), generator=generator)
    return Graph(
        [[edge[0] for edge in edges], [edge[1] for edge in edges]],
        features * draw(st.sampled_from([0.0, 1.0, 1.0])),
        labels * draw(st.sampled_from([0, 1, 1])),
        edge_weight=weights,
        undirected=draw(st.booleans()),
        train=sorted(draw(st.sets(st.integers(0, nodes - 1), min_size=1))),
        num_classes=CLASSES,
    )


def models() -> st.SearchStrategy[nn.Module]:
    layers, norm = st.integers(1, 3), st.booleans()
    kinds = [
        st.builds(gcn, layers, layer_norm=norm, order=st.sampled_from(["before", "after"])),
        st.builds(graphsage, layers, layer_norm=norm, dense=st.integers(1, 2)),
    ]
    return st.one_of(kinds)


def off(found: Tensor, wanted: Tensor) -> float:
    """Largest difference, relative to the largest wanted value where that is above 1."""
    found, wanted = found.detach(), wanted.detach()
    return float((found - wanted).abs().max()) / max(1.0, float(wanted.abs().max()))


@given(graph=odd_graphs(), model=models())
@settings(max_examples=100, deadline=None)
def test_predictions_are_those_of_the_dense_formula(graph: Graph, model: nn.Module) -> None:
    model.eval()
    wanted = exact_pass(model, graph)[-1].detach()
    found = predict(model.float(), graph.with_features(graph.features.float()))
    assert found.dtype == torch.float32
    assert off(found.double(), wanted) < ROUNDING


@pytest.mark.parametrize("estimator", ["exact", "two-way"])
@given(graph=odd_graphs(), model=models())
@settings(max_examples=60, deadline=None)
def test_gradients_of_all_nodes_in_one_batch_are_those_of_autograd(
    estimator: str, graph: Graph, model: nn.Module
) -> None:
    model.train()
    (batch,) = double_minibatches(
        model, graph, nodes="all", batch_size=graph.num_nodes, estimator=estimator
    )
    outputs = exact_pass(model, graph)[-1][batch.nodes]
    assert off(batch.run(model), outputs) < 1e-10
    assert off(batch_gradient(model, batch), full_gradient(model, graph)) < 1e-7
