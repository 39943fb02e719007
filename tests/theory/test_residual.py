"""The built-in residual model: every estimator against the dense formula, in float64."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.theory.full_batch import epoch_gradient, exact_gradients, full_gradient, undirected
from tests.theory.problems import (
    CLASSES,
    FEATURES,
    HIDDEN,
    RAW,
    RAW_CV,
    DensePropagate,
    dense_matrix,
    double_minibatches,
    epoch,
    error,
    exact_pass,
    random_graph,
)
from vrgcn import Graph, Residual, predict

EXACT, WRONG = 1e-13, 1e-11
GRAPHS = {"directed, weighted": random_graph(), "undirected": undirected()}
every_graph = pytest.mark.parametrize("kind", GRAPHS)
every_depth = pytest.mark.parametrize("layers", [1, 2, 3])


def residual(layers: int, **settings: Any) -> Residual:
    torch.manual_seed(layers)
    settings = {"dropout": 0.0, **settings}
    model = Residual(FEATURES, HIDDEN, CLASSES, layers=layers, **settings).double()
    for parameter in model.parameters():
        if parameter.dim() == 1:  # biases and norms: not those that change nothing
            torch.nn.init.normal_(parameter)
    return model


class Dense(DensePropagate):
    """The textbook with tables of all nodes: P without the nodes' own edges averages them."""

    @property
    def others(self) -> Tensor:
        return self.P - torch.diag(self.P.diag())

    def degrees(self) -> Tensor:
        return (self.others != 0).sum(1)

    def table(self, table: Tensor) -> Tensor:
        return self.others @ table


def formula(model: Residual, graph: Graph) -> Tensor:
    """The docstring's formula, in full-batch matrices."""
    P, W = dense_matrix(graph, "mean"), dict(model.named_parameters())
    h = F.gelu(graph.features @ W["first.weight"].t() + W["first.bias"])
    for layer in range(len(model.layers)):
        n = F.layer_norm(
            h, (HIDDEN,), W[f"norms.{layer}.weight"], W[f"norms.{layer}.bias"], eps=1e-5
        )
        place = f"layers.{layer}.linears"
        y = torch.cat([n, P @ n], 1) @ W[f"{place}.0.weight"].t() + W[f"{place}.0.bias"]
        h = h + F.gelu(y) @ W[f"{place}.1.weight"].t() + W[f"{place}.1.bias"]
    last = len(model.layers)
    n = F.layer_norm(h, (HIDDEN,), W[f"norms.{last}.weight"], W[f"norms.{last}.bias"], eps=1e-5)
    return n @ W["head.weight"].t() + W["head.bias"]


@every_graph
@every_depth
def test_the_model_is_its_formula(kind: str, layers: int) -> None:
    model, graph = residual(layers), GRAPHS[kind]
    wanted = formula(model, graph)
    assert error(exact_pass(model, graph)[-1], wanted) < EXACT
    assert error(predict(model, graph), wanted) < EXACT


@every_graph
@every_depth
def test_exact_minibatches_have_the_outputs_and_gradients_of_the_dense_formula(
    kind: str, layers: int
) -> None:
    model, graph = residual(layers), GRAPHS[kind]
    batches = double_minibatches(model, graph, estimator="exact", batch_size=7)
    assert not batches.setup.preprocess  # a dense layer reads the features first
    assert error(epoch_gradient(model, batches), full_gradient(model, graph)) < EXACT
    assert error(epoch(batches, model), formula(model, graph)) < EXACT


@every_graph
@pytest.mark.parametrize("estimator", ["cv", "cvd", "history", RAW, RAW_CV])
@every_depth
def test_theorem_1_takes_an_epoch_for_each_layer_and_one_more(
    layers: int, estimator: str, kind: str
) -> None:
    model, graph = residual(layers), GRAPHS[kind]
    batches = double_minibatches(
        model, graph, estimator=estimator, nodes="all", batch_size=9, fanout=1
    )
    wanted = formula(model, graph)
    for number in range(1, layers + 2):
        off = error(epoch(batches, model), wanted)
        assert off < EXACT if number == layers + 1 else off > WRONG, number


@every_graph
@every_depth
def test_theorem_1_both_ways(kind: str, layers: int) -> None:
    """Epoch 2 T + 1 is the first whose mean gradient is the full batch's, with T tables of
    activations: one for each layer."""
    model, graph = residual(layers), GRAPHS[kind]
    batches = double_minibatches(model, graph, estimator=RAW, fanout=0, batch_size=7)
    wanted = full_gradient(model, graph)
    for number in range(1, 2 * layers + 2):
        off = error(epoch_gradient(model, batches), wanted)
        assert off < EXACT if number == 2 * layers + 1 else off > WRONG, number
    lowest = exact_gradients(model, graph)[0]
    assert error(batches.histories.tables[0, "g"].values, lowest) < EXACT


@pytest.mark.parametrize("estimator", ["exact", "cvd", RAW])
def test_sparse_features_give_the_same_outputs(estimator: str) -> None:
    graph = GRAPHS["undirected"]
    zeros = graph.features * (graph.features.abs() > 0.8)
    dense, sparse = graph.with_features(zeros), graph.with_features(zeros.to_sparse_csr())
    usual, other = residual(2), residual(2, sparse_features=True)
    other.load_state_dict(usual.state_dict())
    batches = double_minibatches(other, sparse, estimator=estimator, nodes="all", batch_size=9)
    for _ in range(3):
        outputs = epoch(batches, other)
    assert error(outputs, formula(usual, dense)) < EXACT
    assert error(predict(other, sparse), formula(usual, dense)) < EXACT


@every_graph
def test_tables_reach_neighbours_alone(kind: str) -> None:
    """Learned rows and neighbours' labels: outputs and gradients of the dense formula."""
    graph = GRAPHS[kind]
    given = {"nodes": graph.num_nodes, "learned_rows": True, "neighbour_labels": True}
    model = residual(2, **given)
    assert model.learned is not None
    torch.nn.init.normal_(model.learned.rows)
    model.set_labels(torch.arange(9), torch.eye(CLASSES, dtype=torch.float64).repeat(3, 1))
    textbook = Dense(dense_matrix(graph, "mean"))
    outputs = model(graph.features, textbook)
    F.cross_entropy(outputs, graph.labels).backward()
    wanted = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    model.zero_grad()
    batches = double_minibatches(
        model, graph, estimator="exact", batch_size=graph.num_nodes, nodes="all"
    )
    (batch,) = batches
    found = batch.run(model)
    assert graph.labels is not None
    F.cross_entropy(found, graph.labels[batch.nodes]).backward()
    assert error(found, outputs[batch.nodes]) < EXACT
    grads = [p.grad.to_dense() for p in model.parameters() if p.grad is not None]
    assert len(grads) == len(list(model.parameters()))
    assert all(error(a, b) < EXACT for a, b in zip(grads, wanted, strict=True))
    alone = model.learned.rows.detach().clone()
    with torch.no_grad():
        model.learned.rows[0] += 1.0
    changed = (model(graph.features, textbook) - outputs).abs().amax(1)
    one_hop = (textbook.others[:, 0] != 0) | (textbook.others @ (textbook.others[:, 0]) != 0)
    assert bool((changed[~one_hop & (torch.arange(len(changed)) != 0)] == 0).all())
    assert not torch.equal(alone, model.learned.rows)
