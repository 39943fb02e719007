"""`RelationInputs`: what baselines read of a node of a graph with several kinds and relations.

    h_0 = x M                                      the columns of a node's own kind, first
    h_l = [h_0,  P_r h_(l-1),  log(1 + degree_r)]  for every relation r into the node's kind

P_r is the mean over a relation's neighbours, each relation in columns of its own: what the last
result says is not mixed with what the last five say, or the team. M moves the columns of each kind
to the front, and projects kinds of many columns to the first right singular vectors of their own
rows. P_r x M = P_r (x M), so that averages of the features are computed once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from vrgcn.baselines.baseline import make_tensor, times
from vrgcn.baselines.hop_inputs import (
    COMPONENTS,
    WIDEST,
    HopInputs,
    column_weights,
    fit_inputs,
)
from vrgcn.baselines.problem import Problem
from vrgcn.engine.history import exact_tables
from vrgcn.engine.setup import set_up
from vrgcn.engine.sweeps import fill_tables, needed_nodes, sweep
from vrgcn.files.kinds import COUNT, SIZES, TEXT, TRIPLES
from vrgcn.files.mistakes import InputError
from vrgcn.graph.dated import known_nodes
from vrgcn.graph.graph import Graph
from vrgcn.graph.sparse import select_columns, select_rows
from vrgcn.models.relational import used_relations

MOST = 2_000  # columns: fewer hops where there would be more
_NUMBERS = 1 << 28  # in the training rows: fewer rows where there would be more
_SAMPLE = 20_000  # rows of a kind that its projection is learned from
_SPARE, _ITERATIONS = 8, 3  # further columns and rounds by which singular vectors are found
INPUTS = {
    "kinds": SIZES,
    "narrow": SIZES,
    "relations": TRIPLES,
    "target": TEXT,
    "hops": COUNT,
}


class RelationInputs(nn.Module):
    """The columns of the nodes of one kind, (level 0, features) -> (last level, `columns`).

    kinds: feature columns of each kind; narrow: how many M makes of them
    relations: (source kind, relation, target kind) of each
    target: the kind whose columns are wanted
    hops: how often neighbours are averaged; 0: a node's own features only
    """

    propagation = "mean"
    mean: Tensor
    scale: Tensor
    projection: Tensor

    def __init__(
        self,
        kinds: Mapping[str, int],
        narrow: Mapping[str, int],
        relations: Sequence[Sequence[str]],
        target: str,
        hops: int,
    ) -> None:
        super().__init__()
        self.arguments: dict[str, Any] = {
            "kinds": dict(kinds),
            "narrow": dict(narrow),
            "relations": [list(one) for one in relations],
            "target": target,
            "hops": hops,
        }
        if target not in kinds or kinds.keys() != narrow.keys():
            raise InputError("its kinds, their widths and the target do not agree")
        self.used = used_relations(relations, [target], hops)
        ends = {"-".join(one): (one[0], one[2]) for one in relations}
        self.own = max(narrow.values())
        self.widths: list[int] = []
        self.places: list[dict[str, slice]] = []
        widths = dict(narrow)
        for overs in self.used:
            before, widths, places = widths, dict(narrow), {}
            for over in overs:
                source, into = ends[over]
                places[over] = slice(widths[into], widths[into] + before[source] + 1)
                widths[into] = places[over].stop
            self.places.append(places)
            self.widths.append(max(*widths.values(), self.own))
        self.columns = widths[target]
        make_tensor(self, "projection", sum(kinds.values()), self.own)
        make_tensor(self, "mean", self.columns)
        make_tensor(self, "scale", self.columns)

    def forward(self, x: Tensor, propagate: Any) -> Tensor:
        return (self.unscaled(x, propagate) - self.mean) * self.scale

    def unscaled(self, x: Tensor, propagate: Any) -> Tensor:
        h = x if self.used else times(x, self.projection)
        for level, overs in enumerate(self.used):
            averages = [propagate.reached(h, over) for over in overs]
            own = propagate.own(h)
            if level == 0:  # P_r is asked for the features as they are
                own = times(own, self.projection)
                averages = [(rows, times(mean, self.projection)) for rows, mean in averages]
            h = own.new_zeros(len(own), self.widths[level])
            h[:, : self.own] = own[:, : self.own]
            for over, (rows, mean) in zip(overs, averages, strict=True):
                place = self.places[level][over]
                degree = propagate.degrees(over).index_select(0, rows).to(h).log1p()
                width = place.stop - place.start - 1
                h[rows, place] = torch.cat([mean[:, :width], degree[:, None]], dim=1)
        return h[:, : self.columns]


def exact_rows(model: nn.Module, graph: Graph, nodes: Tensor) -> Tensor:
    """The exact outputs of a module for some nodes, (len(nodes), width)."""
    setup = set_up(model, graph)
    tables = exact_tables(graph.num_nodes, graph.dtype, setup.device)
    needed = needed_nodes(setup, nodes)
    fill_tables(model, setup, needed[:-1], tables, keep_averages=len(needed) > 1)
    parts = [swept.outputs for swept in sweep(model, setup, needed[-1], tables)]
    return torch.cat([part for part in parts if part is not None])


@dataclass(frozen=True)
class FittedRows:
    """Columns of a problem, scaled by its training nodes.

    places: in `graph.train`, of the training nodes that were taken, ascending
    train, val: (nodes, columns) of these and of the validation nodes
    """

    inputs: HopInputs | RelationInputs
    places: Tensor
    train: Tensor
    val: Tensor


def fit_columns(problem: Problem, hops: int, *, tables: bool = False) -> FittedRows:
    """The columns of a problem, and their values: of each relation in a graph of several kinds.

    tables: with singular vectors of the adjacency matrix and labels of neighbours, which mix all
        relations
    """
    graph = problem.graph
    if reads_relations(graph) and not tables:
        return problem.once(("relations", hops), lambda: _fit(problem, hops))
    inputs, rows = fit_inputs(problem, hops, tables=tables)
    every = torch.arange(len(graph.train))
    return FittedRows(inputs, every, rows[graph.train], rows[graph.val])


def reads_relations(graph: Graph) -> bool:
    """Whether baselines read each relation of a graph for itself."""
    return graph.kinds.named and graph.num_features > 0


def empty_inputs(graph: Graph, hops: int) -> RelationInputs:
    """The columns of a graph, not fitted yet: of fewer hops where there would be too many."""
    kinds = {kind: graph.kinds.widths.get(kind, 0) for kind in graph.kinds.names}
    narrow = {kind: COMPONENTS if width > WIDEST else width for kind, width in kinds.items()}
    relations = [part.triple for part in graph.relations.values()]
    inputs = RelationInputs(kinds, narrow, relations, str(graph.kinds.target), hops)
    return inputs if inputs.columns <= MOST or not hops else empty_inputs(graph, hops - 1)


def _fit(problem: Problem, hops: int) -> FittedRows:
    graph = problem.graph
    inputs = empty_inputs(graph, hops)
    narrow = inputs.arguments["narrow"]
    projection = problem.once(("projections",), lambda: _projection(problem, narrow))
    inputs.projection.data = projection
    inputs.scale.data = torch.ones(inputs.columns, dtype=graph.dtype)
    inputs.mean.data = torch.zeros(inputs.columns, dtype=graph.dtype)
    places = problem.sample(graph.train, max(1, _NUMBERS // max(inputs.columns, 1)))
    rows = exact_rows(inputs, graph, torch.cat([graph.train[places], graph.val]))
    train = rows[: len(places)].double()
    deviation, mean = torch.std_mean(train, dim=0, correction=0)
    # A column that does not vary in training says nothing; leave its scale alone.
    deviation[deviation <= 1e-7 * mean.abs().clamp(min=1e-30)] = 1.0
    inputs.mean.data, inputs.scale.data = mean.to(rows), (1 / deviation).to(rows)
    rows = (rows - inputs.mean) * inputs.scale
    return FittedRows(inputs, places, rows[: len(places)], rows[len(places) :])


def _projection(problem: Problem, narrow: Mapping[str, int]) -> Tensor:
    """M. narrow: how many columns it makes of each kind"""
    graph = problem.graph
    projection = torch.zeros(graph.num_features, max(narrow.values()), dtype=graph.dtype)
    known = known_nodes(graph)
    for kind, width in narrow.items():
        columns = graph.kinds.columns(kind)
        if width == len(columns):
            projection[columns.start : columns.stop, :width] = torch.eye(width, dtype=graph.dtype)
            continue
        own = known[graph.kinds.of(known) == graph.kinds.names.index(kind)]
        own = own[problem.sample(own, _SAMPLE)]
        every = torch.arange(columns.start, columns.stop)
        x = select_columns(select_rows(graph.features, own), every).to(graph.dtype)
        projection[columns.start : columns.stop, :width] = _directions(x, width, problem.seed)
    return projection


def _directions(x: Tensor, count: int, seed: int) -> Tensor:
    """(columns, count): the first right singular vectors of rows whose rare columns weigh more, by
    subspace iteration."""
    weights = column_weights(x)[:, None]
    generator = torch.Generator().manual_seed(seed)
    shape = x.shape[1], min(count + _SPARE, x.shape[1])
    basis = torch.randn(shape, generator=generator).to(x.dtype).requires_grad_()
    for _ in range(_ITERATIONS):
        found = times(x, basis * weights)
        (basis,) = torch.autograd.grad(found, basis, found.detach())  # Xᵀ X basis
        basis = torch.linalg.qr(basis)[0].requires_grad_()
    with torch.no_grad():
        vectors = torch.linalg.svd(times(x, basis * weights), full_matrices=False)[2]
        return basis @ vectors.t()[:, :count] * weights
