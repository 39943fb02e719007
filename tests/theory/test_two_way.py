"""Histories in both directions: gradients that see every neighbour.

Everything is float64, against the dense formula of full-batch training and its gradient by
autograd.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.messages import refused
from tests.theory.full_batch import (
    arbitrary_tables,
    batch_gradient,
    epoch_gradient,
    exact_gradients,
    full_gradient,
    losses,
    undirected,
)
from tests.theory.problems import (
    CLASSES,
    FEATURES,
    HIDDEN,
    RAW,
    RAW_CV,
    Embedded,
    double_minibatches,
    error,
    exact_pass,
    gcn,
    graphsage,
    random_graph,
)

ROUNDING, WRONG = 1e-12, 1e-9


class Residual(nn.Module):
    """Residual connections and jumping knowledge: every level's output is used again at the end."""

    propagation = "mean"

    def __init__(self, layers: int) -> None:
        super().__init__()
        torch.manual_seed(layers)
        self.first = nn.Linear(FEATURES, HIDDEN)
        self.layers = nn.ModuleList(nn.Linear(HIDDEN, HIDDEN) for _ in range(layers))
        self.last = nn.Linear(HIDDEN * (layers + 1), CLASSES)
        self.double()

    def forward(self, x: Tensor, propagate: Any) -> Tensor:
        h = torch.tanh(self.first(x))
        seen = [h]
        for layer in self.layers:
            h = propagate.own(h) + torch.tanh(layer(propagate(h)))
            seen.append(h)
        return self.last(torch.cat([propagate.own(h) for h in seen], dim=1))


class Normalised(nn.Module):
    """BatchNorm between the propagations."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        torch.manual_seed(layers)
        widths = [FEATURES, *[HIDDEN] * (layers - 1)]
        self.layers = nn.ModuleList(nn.Linear(width, HIDDEN) for width in widths)
        self.norms = nn.ModuleList(nn.BatchNorm1d(HIDDEN) for _ in widths)
        self.last = nn.Linear(HIDDEN, CLASSES)
        self.double()

    def forward(self, x: Tensor, propagate: Any) -> Tensor:
        for layer, norm in zip(self.layers, self.norms, strict=True):
            x = torch.tanh(norm(layer(propagate(x))))
        return self.last(x)


MODELS = {
    "gcn": gcn,
    "graphsage": graphsage,
    "embedded": Embedded,
    "residual": Residual,
    "batchnorm": Normalised,
}
ROW_WISE = [name for name in MODELS if name != "batchnorm"]


GRAPHS = {"directed, weighted": random_graph(), "undirected": undirected()}


@pytest.mark.parametrize("fanout", [0, 3, 100])
@pytest.mark.parametrize("layers", [2, 3, 4])
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("kind", GRAPHS)
def test_a_minibatch_of_all_nodes_is_full_batch_training(
    kind: str, name: str, layers: int, fanout: int
) -> None:
    model, graph = MODELS[name](layers), GRAPHS[kind]
    batches = double_minibatches(
        model, graph, estimator="two-way", fanout=fanout, batch_size=graph.num_nodes
    )
    wanted = full_gradient(model, graph)
    for _ in range(2):  # with empty tables, and with arbitrary ones
        (batch,) = batches
        assert error(batch_gradient(model, batch), wanted) < ROUNDING
        batch.commit()
        arbitrary_tables(model, batches)


@pytest.mark.parametrize("estimator", ["two-way-cv", "none/history/history", "few/sampled/history"])
def test_other_ways_to_keep_gradients_are_full_batch_training_too(estimator: str) -> None:
    model, graph = graphsage(3), GRAPHS["directed, weighted"]
    fanout = 1000 if "sampled" in estimator else 1
    batches = double_minibatches(
        model, graph, estimator=estimator, fanout=fanout, batch_size=graph.num_nodes
    )
    (batch,) = batches
    assert error(batch_gradient(model, batch), full_gradient(model, graph)) < ROUNDING


def test_unlabelled_nodes_pass_gradients_on() -> None:
    """Few labels: some nodes get no gradient, and are visited forward only, or not at all."""
    graph = undirected(train=torch.arange(0, 40, 13))
    model = gcn(3)
    several = double_minibatches(model, graph, estimator="two-way", nodes="all", batch_size=4)
    backward, forward = several.visits.backward, several.visits.forward
    batches = double_minibatches(  # in which all that go back are one
        model, graph, estimator="two-way", nodes="all", batch_size=len(backward)
    )
    reached = exact_gradients(model, graph)
    assert 0 < len(forward) < 40 - len(backward) < 40 - 4
    assert not torch.isin(backward, forward).any()
    outside = torch.ones(40, dtype=torch.bool)
    outside[backward] = False
    assert all(g[outside].abs().max() == 0 for g in reached)
    for _ in range(4):
        for batch in batches:
            assert batch.needs_gradient == torch.equal(batch.nodes.sort().values, backward)
            if batch.needs_gradient:
                found = batch_gradient(model, batch)
            else:
                batch.renew(model)
            batch.commit()
    assert error(found, full_gradient(model, graph)) < ROUNDING


@pytest.mark.parametrize("layers", [2, 3, 4])
@pytest.mark.parametrize("name", ROW_WISE)
@pytest.mark.parametrize("kind", GRAPHS)
def test_theorem_1_both_ways(kind: str, name: str, layers: int) -> None:
    """Raw tables, weights fixed, T of activations: epoch k makes the k-th of them exact, from the
    input up. Epoch T + 1 has exact values, so it makes the top level's table of gradients exact,
    epoch T + 2 the one below, and so on. Epoch 2 T + 1 is the first whose mean gradient is the full
    batch's. Nothing is exact earlier."""
    model, graph = MODELS[name](layers), GRAPHS[kind]
    batches = double_minibatches(model, graph, estimator=RAW, fanout=0, batch_size=7)
    wanted, gradients = full_gradient(model, graph), exact_gradients(model, graph)
    received = exact_pass(model, graph)
    first, depth = batches.setup.training.first_table, batches.setup.training.depth
    count = depth - first
    for epoch in range(1, 2 * count + 2):
        off = error(epoch_gradient(model, batches), wanted)
        assert off < ROUNDING if epoch == 2 * count + 1 else off > WRONG, epoch
        for level in range(first, depth):
            tables = batches.histories.tables
            off = error(tables[level, "h"].values, received[level])
            assert off < ROUNDING if epoch > level - first else off > WRONG, (epoch, level)
            off = error(tables[level, "g"].values, gradients[level])
            assert off < ROUNDING if epoch >= count + depth - level else off > WRONG, (epoch, level)


@pytest.mark.parametrize("layers", [2, 3, 4])
@pytest.mark.parametrize("name", ROW_WISE)
@pytest.mark.parametrize("kind", ["directed, weighted", "undirected"])
def test_with_few_neighbours_the_mean_gradient_is_exact_for_any_tables(
    kind: str, name: str, layers: int
) -> None:
    """Over all minibatches of two nodes, whose neighbours are all computed."""
    graph = random_graph(9, 2) if kind == "directed, weighted" else undirected(7, 8)
    model = MODELS[name](layers)
    batches = double_minibatches(model, graph, estimator="two-way", fanout=50, batch_size=2)
    arbitrary_tables(model, batches)
    found = []
    for nodes in combinations(range(graph.num_nodes), 2):
        batch = batches.batch(torch.tensor(nodes))
        found.append(batch_gradient(model, batch))
        batch.discard()
    assert error(torch.stack(found).mean(0), full_gradient(model, graph)) < ROUNDING
    assert error(found[0], full_gradient(model, graph)) > 1e-3


def test_a_discarded_minibatch_leaves_no_trace() -> None:
    model, graph = gcn(3), GRAPHS["undirected"]
    batches = double_minibatches(model, graph, estimator="two-way", batch_size=10)
    arbitrary_tables(model, batches)
    before = {name: value.clone() for name, value in batches.histories.state_dict().items()}
    batch = batches.batch(torch.arange(10))
    batch_gradient(model, batch)
    assert any(not torch.equal(v, before[k]) for k, v in batches.histories.state_dict().items())
    batch.discard()
    assert all(torch.equal(v, before[k]) for k, v in batches.histories.state_dict().items())


class Twice(nn.Module):
    """Asks for the same average twice on each level."""

    propagation = "mean"

    def __init__(self, layers: int) -> None:
        super().__init__()
        torch.manual_seed(layers)
        widths = [FEATURES, *[HIDDEN] * (layers - 1)]
        self.layers = nn.ModuleList(nn.Linear(2 * width, HIDDEN) for width in widths)
        self.last = nn.Linear(HIDDEN, CLASSES)
        self.double()

    def forward(self, x: Tensor, propagate: Any) -> Tensor:
        for layer in self.layers:
            x = torch.tanh(layer(torch.cat([propagate(x), propagate(x).square()], dim=1)))
        return self.last(x)


@pytest.mark.parametrize("estimator", [RAW, RAW_CV, "none/history/history/raw"])
def test_a_model_may_ask_for_the_same_average_twice(estimator: str) -> None:
    model, graph = Twice(3), GRAPHS["undirected"]
    batches = double_minibatches(model, graph, estimator=estimator, batch_size=7)
    for _ in range(8):
        found = epoch_gradient(model, batches)
    assert error(found, full_gradient(model, graph)) < ROUNDING


def test_a_batch_that_is_run_twice_gives_the_same_and_leaves_nothing_behind() -> None:
    """As an optimiser does that asks for the loss more than once."""
    model, graph = gcn(3), GRAPHS["undirected"]
    batches = double_minibatches(model, graph, estimator="two-way", batch_size=7)
    for _ in range(2):
        epoch_gradient(model, batches)
    before = {name: value.clone() for name, value in batches.histories.state_dict().items()}
    batch = next(iter(batches))
    first = batch_gradient(model, batch)
    assert torch.equal(batch_gradient(model, batch), first)
    batch.discard()
    after = batches.histories.state_dict()
    assert all(torch.equal(after[name], value) for name, value in before.items())


def test_two_backward_passes_of_one_run_are_refused() -> None:
    model, graph = gcn(3), GRAPHS["undirected"]
    batch = next(iter(double_minibatches(model, graph, estimator="two-way", batch_size=7)))
    loss = batch.run(model).square().mean()
    loss.backward(retain_graph=True)
    with refused(RuntimeError):
        loss.backward()


def test_features_that_are_learned_get_their_gradient_once() -> None:
    graph = undirected()
    model = gcn(2)
    features = graph.features.clone().requires_grad_()
    learned = graph.with_features(features)
    (batch,) = double_minibatches(
        model, learned, estimator="two-way", preprocess=False, batch_size=graph.num_nodes
    )
    loss = batch.mean(losses(batch.run(model), batch))
    (found,) = torch.autograd.grad(loss, [features])
    output = exact_pass(model, learned)[-1]
    assert graph.labels is not None
    wanted = torch.nn.functional.cross_entropy(output[graph.train], graph.labels[graph.train])
    (expected,) = torch.autograd.grad(wanted, [features])
    assert error(found, expected) < ROUNDING
