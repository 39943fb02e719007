"""Graphs so small that every sample and every dropout mask can be listed, and checks of means.

The trick used throughout: a hop's targets may all be the same node. `every_sample` has one row for
each equally likely set of sampled neighbours, `real_samples` one for each independent draw of the
sampler, so one call of an estimator gives its whole distribution, (outcomes, width). Dropout masks
are columns: `dropout_masks` lists them with their probabilities, and an activation under all masks
is one (nodes, masks) matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product

import torch
from torch import Tensor, nn

from lab.paper import variances
from vrgcn.engine.estimators import ESTIMATORS
from vrgcn.engine.formulas import from_history, residual, sampled
from vrgcn.engine.minibatches import MiniBatches
from vrgcn.engine.plan import Hop
from vrgcn.engine.samplers.importance import Importance
from vrgcn.engine.samplers.uniform import uniform
from vrgcn.graph.graph import Graph
from vrgcn.graph.propagation import Propagation, build_propagation
from vrgcn.models.dense import Dropout

WIDTH = 3
STANDARD_ERRORS = 5.0


def per_target(own: Tensor | float, count: int) -> Tensor:
    """(count,): weights of own edges, which may be given as one number for all."""
    return own if isinstance(own, Tensor) else torch.full((count,), own, dtype=torch.float64)


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def normal(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=seeded(seed))


def directed_graph() -> Graph:
    """Directed and weighted, with in-degrees 0 to 6.

    Node 4 has a self-loop among other edges, 5 only a self-loop, 6 only outgoing edges, 7 nothing.
    """
    into = {0: [1, 2, 3, 4, 5, 6], 1: [0, 2, 6], 2: [0, 1, 3, 4], 3: [0], 4: [4, 0, 6], 5: [5]}
    edges = [(v, u) for u, sources in into.items() for v in sources]
    weight = [0.5 + 0.25 * (3 * v % 7) + 0.125 * u for v, u in edges]
    return Graph(torch.tensor(edges).T, normal(8, WIDTH, seed=0), edge_weight=torch.tensor(weight))


def undirected_graph() -> Graph:
    """Unweighted: a hub of five, a triangle in it, a chain of two, and an isolated node 7."""
    edges = [(0, 1), (0, 2), (0, 3), (0, 4), (0, 5), (1, 2), (5, 6)]
    return Graph(torch.tensor(edges).T, normal(8, WIDTH, seed=1), undirected=True)


GRAPHS: dict[str, Callable[[], Graph]] = {
    "directed": directed_graph,
    "undirected": undirected_graph,
}


def textbook_matrix(rule: str, graph: Graph) -> Tensor:
    """The dense P by its formula; "own matrix" has the graph's places and any values."""
    A = graph.adjacency.to_torch(torch.float64).to_dense()
    eye = torch.eye(graph.num_nodes, dtype=torch.float64)
    if rule == "identity":
        return eye
    if rule == "gcn":
        return (A + eye) / ((A + eye).sum(1)[:, None] * (A + eye).sum(0)).sqrt()
    if rule == "mean":
        return A / A.sum(1, keepdim=True).clamp(min=1e-300)
    return (A + torch.diag(A.sum(0))) * normal(*A.shape, seed=2)  # negative entries too


@dataclass(frozen=True)
class Case:
    """A graph with its propagation matrix in two versions, the textbook's and ours."""

    graph: Graph
    matrix: Tensor
    P: Propagation

    @property
    def nodes(self) -> range:
        return range(self.graph.num_nodes)

    @cached_property
    def others(self) -> Tensor:
        """The matrix without its diagonal."""
        return self.matrix - torch.diag(self.matrix.diag())

    @cached_property
    def degrees(self) -> list[int]:
        """Neighbours other than the node itself."""
        return self.others.ne(0).sum(1).tolist()

    @property
    def targets_and_fanouts(self) -> list[tuple[int, int]]:
        """Every node that has other neighbours, with every fan-out from 1 to its degree."""
        return [(u, f) for u in self.nodes for f in range(1, self.degrees[u] + 1)]


def case(graph_name: str, rule: str) -> Case:
    graph = GRAPHS[graph_name]()
    matrix = textbook_matrix(rule, graph)
    if rule == "own matrix":
        return Case(graph, matrix, Propagation.from_matrix(matrix, dtype=torch.float64))
    return Case(graph, matrix, build_propagation(rule, graph))


CASES = {
    f"{name}-{rule}": case(name, rule)
    for name in GRAPHS
    for rule in ("gcn", "mean", "identity", "own matrix")
}


@dataclass(frozen=True)
class Outcomes:
    """One node's estimates: row i of each answer is the estimate under the i-th sample."""

    u: int
    hop: Hop

    def __len__(self) -> int:
        return self.hop.targets

    def ns(self, h: Tensor) -> Tensor:
        return sampled(self.hop, self._sources(h))

    def cv(self, h: Tensor, past: Tensor) -> Tensor:
        average = self.hop.history @ past
        past = self.hop.pick(self._sources(past))
        return from_history(self.hop, self._sources(h), past, average, ESTIMATORS["cv"])

    def cvd(self, h: Tensor, mean: Tensor, past: Tensor) -> Tensor:
        return self.cv(mean, past) + self.residual(h - mean)

    def residual(self, difference: Tensor) -> Tensor:
        difference = self._sources(difference)
        nothing = torch.zeros(len(self), difference.shape[1], dtype=difference.dtype)
        return residual(self.hop, nothing, difference)

    def _sources(self, h: Tensor) -> Tensor:
        """The targets (u, many times), then all nodes."""
        return torch.cat([h[self.u].expand(len(self), -1), h])


def every_sample(P: Propagation, u: int, fanout: int) -> Outcomes:
    """All sets of `fanout` of u's neighbours, with R = n / fanout."""
    first, end = P.adjacency.indptr[u : u + 2].tolist()
    sets = torch.tensor(list(combinations(range(first, end), fanout)), dtype=torch.int64)
    count = len(sets)
    targets = torch.full((count,), u)
    drawn = P.take(targets, torch.arange(count + 1) * fanout, sets.flatten())
    edges = drawn.with_columns(drawn.indices + count, count + P.num_nodes)
    scale = torch.full((count,), (end - first) / max(fanout, 1), dtype=torch.float64)
    return Outcomes(u, Hop(P.own_rows(targets), edges, scale, P.rows(targets)))


def real_samples(P: Propagation, u: int, fanout: int, count: int, seed: int) -> Outcomes:
    """`count` draws of the real sampler."""
    targets = torch.full((count,), u)
    sample = uniform(P, targets, fanout, seeded(seed))
    drawn = sample.edges
    edges = drawn.with_columns(drawn.indices + count, count + P.num_nodes)
    return Outcomes(u, Hop(sample.own, edges, sample.scale, P.rows(targets)))


def importance_draws(case: Case, size: int, count: int, seed: int) -> Tensor:
    """(count, nodes, nodes): what real importance samples put in the place of P."""
    sampler, nodes = Importance(size), torch.arange(case.graph.num_nodes)
    generator = seeded(seed)
    samples = [sampler.sample(case.P, nodes, 0, generator) for _ in range(count)]
    # The paper's formula draws own edges like any others, and has no further scale.
    assert not any(sample.own or (sample.scale != 1).any() for sample in samples)
    return torch.stack([sample.edges.to_torch().to_dense() for sample in samples])


def dropout_masks(nodes: int, keep: float) -> tuple[Tensor, Tensor]:
    """All masks, (nodes, 2**nodes) of 0 and 1 / keep, and their probabilities (2**nodes,)."""
    kept = torch.tensor(list(product([0.0, 1.0], repeat=nodes)), dtype=torch.float64).T
    probability = (kept * keep + (1 - kept) * (1 - keep)).prod(0)
    return kept / keep, probability


def side_by_side(graph: Graph, copies: int) -> Graph:
    """Copies of a graph without edges between them: one plan is that many independent plans."""
    A, V = graph.adjacency, graph.num_nodes
    shift = torch.arange(copies).repeat_interleave(A.num_entries) * V
    edges = torch.stack([A.indices, A.row_of_entry]).repeat(1, copies) + shift
    features = graph.features.repeat(copies, 1)
    return Graph(edges, features, edge_weight=A.values.repeat(copies) if graph.weighted else None)


class Linear(nn.Module):
    """P x W, or P dropout(x) W: no activation, so its mean is known."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.weight = nn.Parameter(normal(WIDTH, WIDTH, seed=3))
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, propagate: Callable[[Tensor], Tensor]) -> Tensor:
        return propagate(self.dropout(x)) @ self.weight


class TwoLinear(Linear):
    """P dropout(P x) W."""

    def forward(self, x: Tensor, propagate: Callable[[Tensor], Tensor]) -> Tensor:
        return super().forward(propagate(x), propagate)


def outputs(
    model: nn.Module, graph: Graph, copies: int, past: Tensor | None = None, **settings: object
) -> Tensor:
    """(copies, nodes, classes): outputs of all copies' nodes, in two random minibatches.

    past: (nodes, width) or (copies, nodes, width), the history of the second call's input
    """
    torch.manual_seed(0)
    batches = MiniBatches(model, side_by_side(graph, copies), nodes="all", seed=1, **settings)
    if past is not None and batches.estimator.history:
        table = batches.histories.table(1, past.shape[-1])
        table.values.view(copies, *past.shape[-2:]).copy_(past)
    order = torch.randperm(copies * graph.num_nodes)
    with torch.no_grad():
        result = torch.cat([batches.batch(half).run(model) for half in order.chunk(2)])
    return result[order.argsort()].view(copies, graph.num_nodes, -1)


def standard_errors_off(draws: Tensor, expected: Tensor, rounding: float = 1e-9) -> float:
    """`lab.paper.variances.standard_errors_off` at the worst entry.

    A test that asks for less than STANDARD_ERRORS = 5 wrongs a right estimator with probability
    6e-7 per entry, and misses a bias of 10 standard errors, which is 10 / sqrt(count) standard
    deviations of one draw, with probability 3e-7.
    """
    return float(variances.standard_errors_off(draws, expected, rounding).max())


def chi_square_p(counts: Tensor, probability: Tensor) -> float:
    """The p-value of counts (outcomes,) against probabilities (outcomes,) that sum to one."""
    expected = probability * counts.sum()
    statistic = ((counts - expected).square() / expected).sum()
    freedom = torch.tensor(float(len(counts) - 1), dtype=torch.float64)
    return float(torch.special.gammaincc(freedom / 2, statistic / 2))
