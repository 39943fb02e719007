"""Models with a row for each node: every estimator against the dense formula, in float64."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.theory.problems import (
    CLASSES,
    FEATURES,
    HIDDEN,
    RAW,
    RAW_CV,
    DensePropagate,
    dense_matrix,
    double_minibatches,
    error,
    random_graph,
)
from vrgcn import predict
from vrgcn.models.node_table import NodeTable

GRAPH = random_graph()
EXACT = 1e-12


class WithRows(nn.Module):
    """GraphSAGE of two layers with learned rows that reach neighbours in the first."""

    propagation = "mean"

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.first, self.last = nn.Linear(2 * FEATURES, HIDDEN), nn.Linear(2 * HIDDEN, CLASSES)
        self.table = NodeTable.drawn(GRAPH.num_nodes, HIDDEN, 0.5)
        self.double()

    def forward(self, x: Tensor, propagate: Any) -> Tensor:
        h = self.first(propagate.beside(x))
        root = propagate.degrees()[:, None].to(h.dtype).sqrt()
        h = torch.tanh(h + propagate.table(self.table.rows) * root)
        out: Tensor = self.last(propagate.beside(h))
        return out


class Dense(DensePropagate):
    @property
    def others(self) -> Tensor:
        """P without the nodes' own edges: the graph has loops."""
        return self.P - torch.diag(self.P.diag())

    def degrees(self) -> Tensor:
        return (self.others != 0).sum(1)

    def table(self, table: Tensor) -> Tensor:
        return self.others @ table


def dense_outputs(model: nn.Module) -> Tensor:
    out: Tensor = model(GRAPH.features, Dense(dense_matrix(GRAPH, "mean")))
    return out


def dense_gradients(model: nn.Module, nodes: Tensor) -> list[Tensor]:
    assert GRAPH.labels is not None
    loss = F.cross_entropy(dense_outputs(model)[nodes], GRAPH.labels[nodes])
    return list(torch.autograd.grad(loss, list(model.parameters())))


def test_predictions_equal_the_dense_formula() -> None:
    model = WithRows().eval()
    assert error(predict(model, GRAPH), dense_outputs(model).detach()) < EXACT


def test_exact_gradients_equal_those_of_autograd() -> None:
    model, nodes = WithRows(), torch.tensor([3, 14, 15, 9, 26])
    batches = double_minibatches(model, GRAPH, estimator="exact", nodes="all")
    batch = batches.batch(nodes)
    assert batch.labels is not None
    loss = F.cross_entropy(batch.run(model), batch.labels)
    found = torch.autograd.grad(loss, list(model.parameters()))
    for ours, theirs in zip(found, dense_gradients(model, nodes), strict=True):
        dense = ours.to_dense() if ours.is_sparse else ours
        assert torch.allclose(dense, theirs, atol=1e-12, rtol=0)


@pytest.mark.parametrize("estimator", ["cv", "cvd", "history", RAW, RAW_CV])
def test_outputs_are_exact_once_the_histories_are(estimator: str) -> None:
    model = WithRows()
    expected = dense_outputs(model).detach()
    batches = double_minibatches(model, GRAPH, estimator=estimator, nodes="all", batch_size=7)
    with torch.no_grad():
        for _ in range(3):
            for batch in batches:
                found, nodes = batch.run(model), batch.nodes
                batch.commit()
                last = error(found, expected[nodes])
    assert last < EXACT


def test_two_way_gradients_of_an_epoch_add_up_to_the_full_gradient() -> None:
    """Proposition of docs/ideas/two-way.md, here for learned rows: at fixed weights, the mean of an
    epoch's gradients is the full gradient from the third epoch on."""
    model, nodes = WithRows(), torch.arange(GRAPH.num_nodes)
    parameters = list(model.parameters())
    batches = double_minibatches(model, GRAPH, estimator=RAW, nodes=nodes, batch_size=6, fanout=0)
    total: list[Tensor] = []
    for _ in range(4):
        total = [torch.zeros_like(p) for p in parameters]
        for batch in batches:
            labels = batch.labels
            assert labels is not None
            losses = F.cross_entropy(batch.run(model), labels, reduction="none")
            grads = torch.autograd.grad(batch.mean(losses), parameters)
            batch.commit()
            share = len(batch.nodes) / GRAPH.num_nodes
            for added, grad in zip(total, grads, strict=True):
                added.add_(grad.to_dense() if grad.is_sparse else grad, alpha=share)
    for ours, theirs in zip(total, dense_gradients(model, nodes), strict=True):
        assert torch.allclose(ours, theirs, atol=1e-12, rtol=0)
