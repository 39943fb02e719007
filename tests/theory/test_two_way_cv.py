"""`two-way-cv`: the gradient's mean is exact for any history of gradients; its variance.

Exactly, by listing every minibatch and every sample: neighbours are chosen by hand, one for each
node, and a choice for every node and level is one equally likely outcome. The values are exact
(the histories of activations are), those of gradients arbitrary.

With dropout there are two passes, and the second adds √R P̂ (h - μ). Noise that draws random numbers
and changes nothing takes the same way, and what is expected is known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise, product
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lab.paper.variances import gradient_variances
from tests.theory.full_batch import arbitrary_tables, batch_gradient, full_gradient
from tests.theory.graphs import seeded
from tests.theory.problems import (
    CLASSES,
    FEATURES,
    HIDDEN,
    RAW_CV,
    dense_matrix,
    double_minibatches,
    error,
    exact_pass,
    graphsage,
    random_graph,
)
from vrgcn.engine.estimators import Backward, Estimator
from vrgcn.engine.minibatches import MiniBatches
from vrgcn.engine.samplers import Sample
from vrgcn.graph.graph import Graph
from vrgcn.graph.propagation import Propagation
from vrgcn.graph.sparse import offsets

ROUNDING = 1e-12
BATCH = 2


class Chosen:
    """`fanout` neighbours of each node, chosen by hand: by level and node, places among them."""

    random = True
    shared = False
    draws_own = False

    def __init__(self, fanout: int = 1) -> None:
        self.fanout = fanout
        self.choice: dict[tuple[int, int], tuple[int, ...]] = {}

    def computes_neighbours(self, level: int) -> bool:
        return True

    def sample(
        self, P: Propagation, targets: Tensor, level: int, generator: torch.Generator
    ) -> Sample:
        degree = P.degrees(targets)
        count = degree.clamp(max=self.fanout)
        start = P.adjacency.indptr.index_select(0, targets).tolist()
        entries = [
            start[row] + place
            for row, u in enumerate(targets.tolist())
            for place in self.choice.get((level, u), range(int(count[row])))
        ]
        edges = P.take(targets, offsets(count), torch.tensor(entries, dtype=torch.int64))
        return Sample(P.own_rows(targets), edges, degree.to(P.dtype) / count.clamp(min=1))

    def outcomes(self, P: Propagation, nodes: Sequence[int], depth: int) -> Iterator[None]:
        """Sets every choice of these nodes, one after the other; all are equally likely."""
        degree = P.degrees(torch.tensor(nodes)).tolist()
        choices = {
            (level, u): list(combinations(range(n), self.fanout))
            for level in range(depth)
            for u, n in zip(nodes, degree, strict=True)
            if n > self.fanout
        }
        for places in product(*choices.values()):
            self.choice = dict(zip(choices, places, strict=True))
            yield


class Noted(nn.Module):
    """Layers of P h W, first of an embedding of the features.

    noise: draw random numbers and change nothing, as dropout at a rate of 0 would
    """

    def __init__(self, layers: int, rule: str, *, noise: bool = False) -> None:
        super().__init__()
        torch.manual_seed(layers)
        self.propagation = rule
        self.noise = noise
        self.embed = nn.Linear(FEATURES, HIDDEN)
        widths = [HIDDEN] * layers + [CLASSES]
        self.layers = nn.ModuleList(nn.Linear(before, after) for before, after in pairwise(widths))
        self.double()

    def forward(self, x: Tensor, propagate: Any) -> Tensor:
        x = self.embed(x)
        for layer in self.layers:
            x = torch.tanh(x)
            if self.noise and self.training:
                x = x + 0 * torch.rand(1)
            x = layer(propagate(x))
        return x


def path(*, directed: bool) -> Graph:
    """0 - 1 - 2 - 3, where only two nodes have a choice; or directed and weighted."""
    edges = torch.tensor([[0, 1, 2], [1, 2, 3]])
    settings: dict[str, Any] = {"undirected": True}
    if directed:
        edges = torch.tensor([[0, 2, 3, 0, 1, 2], [1, 1, 2, 2, 3, 0]])
        settings = {"edge_weight": torch.tensor([1.0, 0.25, 2.0, 0.5, 1.5, 0.75])}
    features = torch.randn(4, FEATURES, generator=seeded(0), dtype=torch.float64)
    labels = torch.tensor([0, 1, 2, 1])
    return Graph(edges, features, labels, train=torch.arange(4), **settings)


def exact_values(
    model: nn.Module, graph: Graph, sampler: Any, backward: Backward, *, residual: bool
) -> MiniBatches:
    """Histories of activations exact, those of gradients arbitrary."""
    estimator = Estimator(sampler, "corrected", backward, residual)
    batches = double_minibatches(model, graph, estimator=estimator, batch_size=BATCH)
    arbitrary_tables(model, batches)
    for level, h in enumerate(exact_pass(model, graph)[:-1]):
        table = batches.histories.tables[level, "h"]
        table.write(torch.arange(graph.num_nodes), h, 0)
    return batches


def mean_gradient(model: nn.Module, batches: MiniBatches, sampler: Chosen, depth: int) -> Tensor:
    """Over all minibatches and samples."""
    (P,) = batches.setup.P.values()
    found = []
    for _ in sampler.outcomes(P, range(P.num_nodes), depth):
        for nodes in combinations(range(P.num_nodes), BATCH):
            batch = batches.batch(torch.tensor(nodes))
            found.append(batch_gradient(model, batch))
            batch.discard()
    return torch.stack(found).mean(0)


@pytest.mark.parametrize(
    ("directed", "rule", "layers", "passes"),
    [
        (False, "gcn", 1, 1),
        (False, "gcn", 2, 2),
        (True, "mean", 2, 1),
        (True, "gcn", 2, 2),
        (True, "mean", 3, 1),
    ],
)
def test_with_exact_values_the_mean_gradient_is_exact_for_any_history_of_gradients(
    directed: bool, rule: str, layers: int, passes: int
) -> None:
    graph, sampler = path(directed=directed), Chosen()
    model = Noted(layers, rule, noise=passes == 2)
    batches = exact_values(model, graph, sampler, "corrected", residual=True)
    assert batches.setup.training.random == (passes == 2)
    found = mean_gradient(model, batches, sampler, layers)
    assert error(found, full_gradient(model, graph)) < ROUNDING


def test_without_the_correction_it_is_not() -> None:
    graph, sampler = path(directed=False), Chosen()
    model = Noted(2, "gcn")
    batches = exact_values(model, graph, sampler, "history", residual=False)
    assert error(mean_gradient(model, batches, sampler, 2), full_gradient(model, graph)) > 0.1


# The variance.


def hub() -> Graph:
    """A node with six neighbours, one with three, six with two, one with one."""
    pairs = [(0, v) for v in range(1, 7)] + [(1, 2), (1, 3), (4, 7), (5, 8), (7, 8)]
    features = torch.randn(9, FEATURES, generator=seeded(1), dtype=torch.float64)
    return Graph(
        torch.tensor(pairs).T,
        features,
        torch.arange(9) % CLASSES,
        undirected=True,
        train=torch.arange(9),
    )


class OneHop(nn.Module):
    """P tanh(x W): one hop, and W has a gradient by the neighbours alone."""

    propagation = "mean"

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed = nn.Linear(FEATURES, CLASSES, bias=False)
        self.double()

    def forward(self, x: Tensor, propagate: Any) -> Tensor:
        return propagate(torch.tanh(self.embed(x)))


def by_formula(
    graph: Graph, model: OneHop, nodes: list[int], D: int, past: Tensor
) -> dict[str, Tensor]:
    """(parameters,): `gradient_variances` added over the minibatch's nodes.

    past: (nodes, classes), ḡ per node
    """
    slope = 1 - torch.tanh(model.embed(graph.features)).square()
    # ∂h_v / ∂W, (nodes, classes, parameters): h_vc depends on row c of W.
    eye = torch.eye(CLASSES, dtype=torch.float64)
    pull = torch.einsum("vc,cd,vf->vcdf", slope, eye, graph.features).flatten(2).detach()
    h = torch.tanh(model.embed(graph.features)).detach()
    A = graph.adjacency.to_torch(torch.float64).to_dense()
    P = A / A.sum(1, keepdim=True)
    outputs = (P @ h).requires_grad_()
    loss = F.cross_entropy(outputs, graph.labels, reduction="sum")
    (g,) = torch.autograd.grad(loss, outputs)
    total: dict[str, Tensor] = {}
    for u in nodes:
        v = P[u].nonzero()[:, 0]
        inside = torch.isin(v, torch.tensor(nodes))
        share = 1 / len(nodes)  # the loss is a mean
        each = gradient_variances(
            P[u, v], min(D, len(v)), share * g[u], share * past[u], inside, pull[v]
        )
        total = {name: total.get(name, torch.tensor(0.0)) + value for name, value in each.items()}
    return total


def every_gradient(
    model: nn.Module, batches: MiniBatches, sampler: Chosen, nodes: list[int]
) -> Tensor:
    """(samples, parameters): of one minibatch."""
    (P,) = batches.setup.P.values()
    found = []
    for _ in sampler.outcomes(P, nodes, 1):
        batch = batches.batch(torch.tensor(nodes))
        found.append(batch_gradient(model, batch))
        batch.discard()
    return torch.stack(found)


@pytest.mark.parametrize("nodes", [[0, 7], [0, 1], [0, 1, 2, 4]])
@pytest.mark.parametrize("D", [1, 2, 3])
def test_the_variance_of_the_gradient_is_the_formulas(D: int, nodes: list[int]) -> None:
    """Compares `two-way-cv` and cv, which differ in δ and in the messages within the minibatch."""
    graph, model, sampler = hub(), OneHop(), Chosen(D)
    for backward, name in (("corrected", "two-way-cv"), ("sampled", "cv")):
        batches = exact_values(model, graph, sampler, backward, residual=False)
        past = torch.zeros(9, CLASSES, dtype=torch.float64)
        if name == "two-way-cv":  # the table holds left g, left = 1 / degree
            past = batches.histories.tables[0, "g"].values * graph.adjacency.counts[:, None]
        expected = by_formula(graph, model, nodes, D, past)
        found = every_gradient(model, batches, sampler, nodes).var(0, correction=0)
        assert error(found, expected[name]) < ROUNDING
        other = expected["cv" if name == "two-way-cv" else "two-way-cv"]
        if name == "two-way-cv" or nodes != [0, 7]:  # cv's is that of ḡ = 0 and no pairs inside
            assert error(found, other) > 0.01


def test_where_the_history_of_gradients_is_fresh_there_is_no_variance() -> None:
    graph, model, sampler = hub(), OneHop(), Chosen()
    batches = exact_values(model, graph, sampler, "corrected", residual=False)
    nodes = [0, 1, 4]
    assert every_gradient(model, batches, sampler, nodes).var(0).max() > 1e-3
    batch = batches.batch(torch.arange(9))
    batch_gradient(model, batch)
    batch.commit()
    found = every_gradient(model, batches, sampler, nodes)
    assert len(found) == 6 * 3 * 2
    assert error(found, found[:1].expand_as(found)) < ROUNDING


def test_a_history_of_gradients_in_the_right_direction_lowers_the_variance() -> None:
    graph, model = hub(), OneHop()
    nothing = torch.zeros(9, CLASSES, dtype=torch.float64)
    once = by_formula(graph, model, [0], 1, nothing)
    torch.testing.assert_close(once["two-way-cv"], once["cv"])
    batches = double_minibatches(model, graph, estimator="two-way-cv", batch_size=9)
    (batch,) = batches
    batch_gradient(model, batch)
    degrees = graph.adjacency.counts[:, None]
    past = batches.histories.tables[0, "g"].values * degrees
    for share in (0.5, 0.9, 1.0):  # of the gradient: (1 - share)^2 of the variance is left
        found = by_formula(graph, model, [0], 1, share * past)["two-way-cv"]
        torch.testing.assert_close(found, (1 - share) ** 2 * once["cv"])


def test_with_empty_histories_of_gradients_and_strangers_in_a_batch_it_is_cvd() -> None:
    """Under real dropout: where no two nodes of the minibatch are neighbours and ḡ is zero, all
    that goes back goes by the sample, with √R through the residual and R through the rest."""
    graph = random_graph(nodes=80, degree=6)
    model = graphsage(layers=2, dropout=0.4)
    adjacency = dense_matrix(graph, "mean") > 0
    adjacency |= adjacency.T.clone()
    strangers: list[int] = []
    for node in graph.train.tolist():
        if not adjacency[node, strangers].any() and len(strangers) < 6:
            strangers.append(node)
    found = []
    for name in ("cvd", RAW_CV):
        batches = double_minibatches(model, graph, estimator=name, nodes="all", seed=5)
        torch.manual_seed(8)
        batch = batches.batch(torch.tensor(strangers), torch.Generator().manual_seed(3))
        model.train().zero_grad()
        assert batch.labels is not None
        F.cross_entropy(batch.run(model), batch.labels).backward()
        found.append(
            torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])
        )
    assert len(strangers) == 6
    assert error(found[1], found[0]) < ROUNDING
    assert found[0].norm() > 0.01
