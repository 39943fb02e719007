"""Histories in both directions: gradients that see every neighbour.

Everything is float64, against the dense formula of full-batch training and its gradient by
autograd.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.theory.problems import (
    CLASSES,
    FEATURES,
    HIDDEN,
    Embedded,
    dense_matrix,
    double_minibatches,
    error,
    exact_pass,
    gcn,
    graphsage,
    random_graph,
)
from vrgcn.engine.estimators import Estimator
from vrgcn.engine.minibatches import Batch, MiniBatches
from vrgcn.engine.setup import propagation_of
from vrgcn.graph.graph import Graph

ROUNDING = 1e-12


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


def undirected(nodes: int = 40, pairs: int = 90, *, seed: int = 0, **settings: Any) -> Graph:
    """No weights, both directions, some nodes without neighbours."""
    generator = torch.Generator().manual_seed(seed)
    return Graph(
        torch.randint(nodes - 2, (2, pairs), generator=generator),
        torch.randn(nodes, FEATURES, generator=generator, dtype=torch.float64),
        torch.randint(CLASSES, (nodes,), generator=generator),
        undirected=True,
        **{"train": torch.arange(nodes), **settings},
    )


GRAPHS = {"directed, weighted": random_graph(), "undirected": undirected()}


def losses(outputs: Tensor, batch: Batch) -> Tensor:
    assert batch.labels is not None
    return F.cross_entropy(outputs[batch.in_loss], batch.labels[batch.in_loss], reduction="none")


def full_gradient(model: nn.Module, graph: Graph, P: Tensor | None = None) -> Tensor:
    """Of the mean loss of the training nodes, by the dense formula."""
    assert graph.labels is not None
    output = exact_pass(model, graph, P)[-1]
    loss = F.cross_entropy(output[graph.train], graph.labels[graph.train])
    return flat(torch.autograd.grad(loss, list(model.parameters())))


def flat(gradients: Any) -> Tensor:
    return torch.cat([gradient.reshape(-1) for gradient in gradients])


def batch_gradient(model: nn.Module, batch: Batch) -> Tensor:
    loss = batch.mean(losses(batch.run(model), batch))
    return flat(torch.autograd.grad(loss, list(model.parameters())))


def epoch_gradient(model: nn.Module, batches: MiniBatches) -> Tensor:
    """The mean over an epoch's minibatches, each weighted by its nodes; histories are written."""
    total: Any = 0
    for batch in batches:
        total = total + batch_gradient(model, batch) * len(batch.nodes)
        batch.commit()
    return total / len(batches.nodes)


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
    for _ in range(2):  # with empty tables, and with those of the step before
        (batch,) = batches
        assert error(batch_gradient(model, batch), wanted) < ROUNDING
        batch.commit()


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
    batches = double_minibatches(model, graph, estimator="two-way", nodes="all", batch_size=40)
    backward, forward = batches.visits.backward, batches.visits.forward
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
    """Weights fixed: the tables of activations are exact after as many epochs as there are of them,
    those of gradients after as many more, and then so is the mean gradient of an epoch."""
    model, graph = MODELS[name](layers), GRAPHS[kind]
    batches = double_minibatches(model, graph, estimator="two-way", fanout=0, batch_size=7)
    wanted = full_gradient(model, graph)
    gradients = exact_gradients(model, graph)
    first = batches.setup.training.first_table
    tables = batches.setup.training.depth - first
    received = exact_pass(model, graph)
    early = [error(epoch_gradient(model, batches), wanted)]
    for done in range(1, 2 * tables + 1):
        for level in range(first, first + tables):
            exact = error(batches.histories.tables[level, "h"].values, received[level]) < ROUNDING
            # The first table depends on no other.
            assert exact == (done > level - first), (done, level)
        if done == 2 * tables:
            for level in range(first, first + tables):
                kept = batches.histories.tables[level, "g"].values
                assert error(kept, gradients[level]) < ROUNDING
        early.append(error(epoch_gradient(model, batches), wanted))
    assert early[-1] < ROUNDING
    assert min(early[:tables]) > 1e-3


def exact_gradients(model: nn.Module, graph: Graph) -> list[Tensor]:
    """By level, what a table of gradients holds: left ∂(sum of losses)/∂(P h), (nodes, width)."""
    P = dense_matrix(graph, propagation_of(model))
    answers: list[Tensor] = []

    class Remember:
        def __call__(self, h: Tensor) -> Tensor:
            answers.append((P @ h).detach().requires_grad_() if not h.requires_grad else P @ h)
            return answers[-1]

        def own(self, h: Tensor) -> Tensor:
            return h

        def beside(self, h: Tensor) -> Tensor:
            return torch.cat([h, self(h)], dim=-1)

    output = model(graph.features, Remember())
    assert graph.labels is not None
    loss = F.cross_entropy(output[graph.train], graph.labels[graph.train], reduction="sum")
    left = torch.ones(graph.num_nodes, dtype=torch.float64)
    rule = propagation_of(model)
    sums = graph.adjacency.to_torch(torch.float64).to_dense().sum(1)
    if rule == "gcn":
        left = (1 + sums).rsqrt()
    elif rule == "mean":
        left = torch.where(sums > 0, sums, 1).reciprocal()
    return [left[:, None] * g for g in torch.autograd.grad(loss, answers)]


def arbitrary_tables(model: nn.Module, batches: MiniBatches, *, seed: int = 0) -> None:
    """Fill every table, of activations and gradients, with random numbers."""
    generator = torch.Generator().manual_seed(seed)
    for batch in batches:  # makes the tables
        batch_gradient(model, batch)
        batch.commit()
    for table in batches.histories.tables.values():
        table.values.copy_(torch.randn(table.values.shape, generator=generator).double())


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


def test_compositions_of_ones_own() -> None:
    assert Estimator("few", "corrected", "corrected") == Estimator("few", "corrected", "corrected")
