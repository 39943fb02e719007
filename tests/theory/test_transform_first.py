"""Features multiplied by the first weights before they are propagated: P (X W) in place of (P X) W.

The wanted values are always those of the usual order, by the dense formula on dense features, with
the same weights. What is checked against them is the other order, on the same features as a sparse
CSR tensor: outputs and gradients of each estimator, whose first level now has histories.

Everything is float64, so that equal means rounding: `ROUNDING`. `WRONG` is far from it.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.theory.full_batch import (
    arbitrary_tables,
    batch_gradient,
    epoch_gradient,
    exact_gradients,
    full_gradient,
    undirected,
)
from tests.theory.graphs import STANDARD_ERRORS, standard_errors_off
from tests.theory.problems import (
    FEATURES,
    MODELS,
    RAW,
    RAW_CV,
    copies,
    dense_matrix,
    double_minibatches,
    epoch,
    error,
    exact_pass,
    random_graph,
    ring_edges,
)
from vrgcn.engine.minibatches import MiniBatches
from vrgcn.engine.setup import propagation_of
from vrgcn.graph.graph import Graph
from vrgcn.inference.predict import predict

ROUNDING, WRONG = 1e-12, 1e-9


def with_zeros(graph: Graph) -> Graph:
    """Most features are zero, some rows wholly."""
    features = graph.features * (graph.features.abs() > 0.8)
    features[3] = 0
    return graph.with_features(features)


DENSE = {"directed, weighted": with_zeros(random_graph()), "undirected": with_zeros(undirected())}
SPARSE = {
    name: graph.with_features(graph.features.to_sparse_csr()) for name, graph in DENSE.items()
}
every_graph = pytest.mark.parametrize("kind", DENSE)
every_model = pytest.mark.parametrize("name", MODELS)


def pair(name: str, layers: int, **settings: Any) -> tuple[nn.Module, nn.Module]:
    """The model in the usual order and in the other, with the same weights."""
    usual = MODELS[name](layers, **settings)
    other = MODELS[name](layers, transform_first=True, **settings)
    other.load_state_dict(usual.state_dict())
    return usual, other


def as_usual(model: nn.Module, gradient: Tensor) -> Tensor:
    """A flat gradient of the other order as the usual model's parameters lie."""
    sizes = [parameter.numel() for parameter in model.parameters()]
    parts = list(gradient.split(sizes))
    first = next(iter(model.parameters()))
    parts[0] = parts[0].view(first.shape).t().reshape(-1)
    return torch.cat(parts)


@every_graph
@every_model
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_both_orders_give_the_same_outputs_and_gradients(kind: str, name: str, layers: int) -> None:
    usual, other = pair(name, layers)
    wanted, gradient = exact_pass(usual, DENSE[kind])[-1], full_gradient(usual, DENSE[kind])
    for graph in (DENSE[kind], SPARSE[kind]):
        P = dense_matrix(graph, propagation_of(usual))
        assert error(exact_pass(other, graph, P)[-1], wanted) < ROUNDING
        assert error(as_usual(other, full_gradient(other, graph, P)), gradient) < ROUNDING
        assert error(predict(other, graph), wanted) < ROUNDING


@every_graph
@every_model
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_exact_minibatches_have_the_outputs_and_gradients_of_the_usual_order(
    kind: str, name: str, layers: int
) -> None:
    usual, other = pair(name, layers)
    batches = double_minibatches(other, SPARSE[kind], estimator="exact", batch_size=7)
    assert not batches.setup.preprocess
    found = as_usual(other, epoch_gradient(other, batches))
    assert error(epoch(batches, other), exact_pass(usual, DENSE[kind])[-1]) < ROUNDING
    assert error(found, full_gradient(usual, DENSE[kind])) < ROUNDING


@every_graph
@every_model
@pytest.mark.parametrize("estimator", ["cv", "cvd", "history", RAW, RAW_CV])
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_theorem_1_takes_an_epoch_for_the_products_and_one_for_each_hidden_level(
    layers: int, estimator: str, name: str, kind: str
) -> None:
    usual, other = pair(name, layers)
    batches = double_minibatches(
        other, SPARSE[kind], estimator=estimator, nodes="all", batch_size=9, fanout=1
    )
    wanted = exact_pass(usual, DENSE[kind])[-1]
    for number in range(1, layers + 2):
        off = error(epoch(batches, other), wanted)
        assert off < ROUNDING if number == layers + 1 else off > WRONG
    assert sorted(batches.histories.tables) == [(level, "h") for level in range(layers)]
    held = batches.histories.tables[0, "h"].values
    weight = usual.layers[0].linears[0].weight.detach()  # type: ignore[index,union-attr]
    of_neighbours = weight[:, -FEATURES:]  # the second half of GraphSAGE's [W_own, W_neighbours]
    assert error(held, DENSE[kind].features @ of_neighbours.t()) < ROUNDING


@every_graph
@every_model
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_theorem_1_both_ways(kind: str, name: str, layers: int) -> None:
    """Epoch 2 T + 1 is the first whose mean gradient is the full batch's, with T tables of
    activations, of which the products are one."""
    usual, other = pair(name, layers)
    batches = double_minibatches(other, SPARSE[kind], estimator=RAW, fanout=0, batch_size=7)
    wanted = full_gradient(usual, DENSE[kind])
    for number in range(1, 2 * layers + 2):
        off = error(as_usual(other, epoch_gradient(other, batches)), wanted)
        assert off < ROUNDING if number == 2 * layers + 1 else off > WRONG, number
    of_products = exact_gradients(other, SPARSE[kind])[0]
    assert error(batches.histories.tables[0, "g"].values, of_products) < ROUNDING


@every_graph
@every_model
@pytest.mark.parametrize("estimator", ["two-way", "two-way-cv"])
def test_a_minibatch_of_all_nodes_is_full_batch_training(
    kind: str, name: str, estimator: str
) -> None:
    usual, other = pair(name, 2)
    graph = SPARSE[kind]
    batches = double_minibatches(other, graph, estimator=estimator, batch_size=graph.num_nodes)
    arbitrary_tables(other, batches)
    (batch,) = batches
    found = as_usual(other, batch_gradient(other, batch))
    assert error(found, full_gradient(usual, DENSE[kind])) < ROUNDING


NODES, COPIES = 8, 4000


def linear_outputs(
    estimator: str, name: str, dropout: float, *, past: float
) -> tuple[Tensor, Tensor]:
    """(copies, nodes, classes) outputs of a model without activation, each copy by its own samples
    and masks, and the usual order's exact ones without dropout.

    past: histories are so many times the exact products
    """
    features = torch.randn(NODES, FEATURES, generator=torch.Generator().manual_seed(3)).double()
    features *= features.abs() > 0.5
    dense = copies(ring_edges(NODES), features, COPIES)
    usual, other = pair(name, 1, dense=1, dropout=dropout, layer_norm=False)
    batches = MiniBatches(
        other.train(),
        dense.with_features(dense.features.to_sparse_csr()),
        estimator=estimator,
        nodes="all",
        fanout=1,
        history_dtype="float64",
    )
    if batches.estimator.history:
        batches.warm_start(other)
        batches.histories.tables[0, "h"].values.mul_(past)
    torch.manual_seed(0)
    everyone = torch.arange(dense.num_nodes)
    with torch.no_grad():
        found = batches.batch(everyone, torch.Generator().manual_seed(5)).run(other)
        one = copies(ring_edges(NODES), features, 1)
        wanted = exact_pass(usual.eval(), one)[-1]
    return found.view(COPIES, NODES, -1), wanted


@every_model
@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("estimator", ["ns", "cv", "cvd"])
def test_the_mean_over_samples_and_masks_is_p_x_w_whatever_the_history(
    estimator: str, dropout: float, name: str
) -> None:
    # 4,000 copies: a bias of a sixth of a standard deviation would be off by 10 standard errors.
    found, wanted = linear_outputs(estimator, name, dropout, past=-2.0)
    assert float(found.std(0).min()) > 1e-3, "nothing was drawn"
    assert standard_errors_off(found, wanted) < STANDARD_ERRORS
    assert standard_errors_off(1.5 * found, wanted) > 2 * STANDARD_ERRORS


@every_model
@pytest.mark.parametrize("order", ["after", "before"])
def test_exact_training_drops_features_once_for_both_products_in_either_order(
    name: str, order: str
) -> None:
    """A feature that is dropped is dropped for the node itself and for all that average it."""
    usual, other = pair(name, 1, dense=1, dropout=0.5, order=order)
    dropped: list[Tensor] = []
    other.dropout.register_forward_hook(  # type: ignore[union-attr]
        lambda _, given, left: dropped.append(left.to_dense())
    )
    graph = SPARSE["undirected"]
    found = exact_pass(other.train(), graph)[-1]
    (left,) = dropped
    kept = left != 0
    assert 0 < int(kept.sum()) < len(graph.features.values())
    assert torch.equal(left[kept], 2 * DENSE["undirected"].features[kept])
    wanted = exact_pass(usual.eval(), DENSE["undirected"].with_features(left))[-1]
    assert error(found, wanted) < ROUNDING


def test_a_graph_of_sparse_features_trains_alike_in_both_orders() -> None:
    """Ten steps of gradient descent by exact minibatches: the same weights in the end."""
    ends = []
    for model, graph in zip(
        pair("graphsage", 2), (DENSE["undirected"], SPARSE["undirected"]), strict=True
    ):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        batches = double_minibatches(model, graph, estimator="exact", batch_size=10, seed=1)
        for _ in range(3):
            for batch in batches:
                assert batch.labels is not None
                loss = F.cross_entropy(batch.run(model), batch.labels)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                batch.commit()
        ends.append(model.state_dict())
    assert all(error(ends[1][name], value) < 1e-10 for name, value in ends[0].items())
