"""Samplers: which neighbours of a set of target nodes a hop uses, and how they are weighted.

A sampler looks at P alone, never at activations. It answers for each target with some entries of
its row of P and with a scale R, such that

    own * h_u + R * sum over sampled v of P[u, v] h_v

has the mean (P h)_u. The own edge is exact and R is kept apart from the entries, because the
control variate for dropout needs both R and its square root.

    full         every neighbour, R = 1
    uniform      `fanout` of the n other neighbours without replacement, R = n / fanout
    importance   the same `size` nodes for all targets, drawn from q(v) ~ sum_u P[u, v]^2 with
                 replacement; their entries are P[u, v] * count(v) / (size * q(v)) and R = 1.
                 The paper's IS draws own edges like any others, so here own = 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from vrgcn.graph.propagation import Propagation
from vrgcn.graph.sparse import CSR, offsets


@dataclass(frozen=True)
class Sample:
    """own: (targets,), edges: (targets, nodes) CSR, scale: (targets,) R of each row."""

    own: Tensor
    edges: CSR
    scale: Tensor


def full(P: Propagation, targets: Tensor) -> Sample:
    """All neighbours: the exact product."""
    own, edges = P.rows(targets)
    return Sample(own, edges, torch.ones_like(own))


def uniform(P: Propagation, targets: Tensor, fanout: int, generator: torch.Generator) -> Sample:
    """`fanout` neighbours of each target, without replacement; all where there are no more.

    Floyd's algorithm, all rows at a time: its i-th draw is t from 0..n-fanout+i, and where t is
    taken already, n-fanout+i itself. It costs the same at degree 10 and at degree 10,000.
    """
    if fanout == 0:
        return nothing(P, targets)
    N = P.neighbours
    start = N.indptr.index_select(0, targets)
    degree = N.indptr.index_select(0, targets + 1) - start
    fanout = min(fanout, int(degree.max()) if len(degree) else 0)
    column = torch.arange(fanout)
    first = (degree - fanout).clamp(min=0)  # rows with fewer neighbours take 0, 1, 2, ...
    uniforms = torch.rand(len(targets), fanout, dtype=torch.float64, generator=generator)
    upper = first[:, None] + column
    drawn = torch.where((degree > fanout)[:, None], (uniforms * (upper + 1)).long(), upper)
    for i in range(1, fanout):
        taken = (drawn[:, :i] == drawn[:, i, None]).any(1)
        drawn[:, i] = torch.where(taken, upper[:, i], drawn[:, i])
    count = degree.clamp(max=fanout)
    entries = start[:, None] + drawn
    whole = bool((degree >= fanout).all())
    entries = entries.view(-1) if whole else entries[column < count[:, None]]
    edges = N.take(offsets(count), entries)
    scale = degree.to(N.values.dtype) / count.clamp(min=1)
    return Sample(P.diagonal.index_select(0, targets), edges, scale)


def nothing(P: Propagation, targets: Tensor) -> Sample:
    """No neighbour: R is never used."""
    own = P.diagonal.index_select(0, targets)
    empty = CSR(targets.new_zeros(len(targets) + 1), targets[:0], own[:0], P.num_nodes)
    return Sample(own, empty, torch.ones_like(own))


def thinned(P: Propagation, targets: Tensor, most: int, generator: torch.Generator) -> CSR:
    """Rows of P's neighbours with at most `most` entries each, whose mean is the whole row.

    A longer row is cut into `most` runs, as equal as can be; one entry is drawn from each and
    weighted by the run's length. Unlike `uniform`, whose draws are compared pair by pair, it costs
    no more than the entries it answers with, so `most` may be in the thousands.
    """
    N = P.neighbours
    start = N.indptr[targets]
    degree = N.indptr[targets + 1] - start
    count = degree.clamp(max=most)
    indptr = offsets(count)
    total = int(indptr[-1])
    row = torch.repeat_interleave(torch.arange(len(targets)), count, output_size=total)
    run = torch.arange(total) - indptr[row]
    first = run * degree[row] // count[row]
    length = (run + 1) * degree[row] // count[row] - first
    uniforms = torch.rand(total, dtype=torch.float64, generator=generator)
    entries = start[row] + first + (uniforms * length).long()
    return CSR(indptr, N.indices[entries], N.values[entries] * length, N.columns)


class Importance:
    """FastGCN's importance sampling with the paper's global q, unbiased."""

    def __init__(self, P: Propagation) -> None:
        squares = P.diagonal.double().square()
        squares.index_add_(0, P.neighbours.indices, P.neighbours.values.double().square())
        total = squares.sum()
        # A matrix of zeros has nothing to prefer; its average is zero whatever is drawn.
        self.probability = (
            squares / total if total > 0 else torch.full_like(squares, 1 / len(squares))
        )
        self.cumulative = self.probability.cumsum(0)

    def __call__(
        self, P: Propagation, targets: Tensor, size: int, generator: torch.Generator
    ) -> Sample:
        uniforms = torch.rand(size, dtype=torch.float64, generator=generator)
        drawn = torch.searchsorted(self.cumulative, uniforms * self.cumulative[-1], right=True)
        nodes, counts = torch.unique(drawn, return_counts=True)
        weight = counts / (size * self.probability[nodes])

        # Rows of P with the own edge among the others, then only the columns that were drawn.
        own, others = P.rows(targets)
        rows = torch.cat([torch.arange(len(targets)), others.row_of_entry])
        columns = torch.cat([targets, others.indices])
        values = torch.cat([own, others.values])
        place = torch.searchsorted(nodes, columns).clamp_(max=len(nodes) - 1)
        kept = (nodes[place] == columns) & (values != 0)
        rows, columns, place, values = rows[kept], columns[kept], place[kept], values[kept]
        order = torch.argsort(rows, stable=True)
        edges = CSR(
            offsets(torch.bincount(rows, minlength=len(targets))),
            columns[order],
            (values.double() * weight[place])[order].to(own.dtype),
            others.columns,
        )
        return Sample(torch.zeros_like(own), edges, torch.ones_like(own))
