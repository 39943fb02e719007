"""`fanout` of the n other neighbours without replacement, R = n / fanout; all where n <= fanout."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from vrgcn.engine.samplers import Sample
from vrgcn.engine.samplers.none import no_neighbours
from vrgcn.graph.propagation import Propagation
from vrgcn.graph.sparse import offsets

_COMPARED = 32  # draws; comparing more, each with all before it, takes longer than marking them


class Uniform:
    """fanouts: for each level from the input up"""

    random = True
    shared = False
    draws_own = False
    size_setting = "fan-out"

    def __init__(self, fanouts: Sequence[int]) -> None:
        self.fanouts = tuple(fanouts)

    @classmethod
    def build(cls, fanouts: Sequence[int]) -> Uniform:
        return cls(fanouts)

    def computes_neighbours(self, level: int) -> bool:
        return self.fanouts[level] > 0

    def sample(
        self, P: Propagation, targets: Tensor, level: int, generator: torch.Generator
    ) -> Sample:
        return uniform(P, targets, self.fanouts[level], generator)


def uniform(P: Propagation, targets: Tensor, fanout: int, generator: torch.Generator) -> Sample:
    """`fanout` neighbours of each target, without replacement; all where there are no more.

    Floyd's algorithm, all rows at a time: its i-th draw is t from 0..n-fanout+i, and where t is
    taken already, n-fanout+i itself. It costs the same at degree 10 and at degree 10,000. What is
    taken is found by comparing draws with each other if they are few, else by marking neighbours.
    """
    if fanout == 0:
        return no_neighbours(P, targets)
    start = P.adjacency.indptr.index_select(0, targets)
    degree = P.degrees(targets)
    fanout = min(fanout, int(degree.max()) if len(degree) else 0)
    column = torch.arange(fanout)
    first = (degree - fanout).clamp(min=0)  # rows with fewer neighbours take 0, 1, 2, ...
    uniforms = torch.rand(len(targets), fanout, dtype=torch.float64, generator=generator)
    upper = first[:, None] + column
    drawn = torch.where((degree > fanout)[:, None], (uniforms * (upper + 1)).long(), upper)
    if fanout <= _COMPARED:
        for i in range(1, fanout):
            taken = (drawn[:, :i] == drawn[:, i, None]).any(1)
            drawn[:, i] = torch.where(taken, upper[:, i], drawn[:, i])
    else:
        drawing = degree > fanout
        drawn[drawing] = _distinct(drawn[drawing], upper[drawing], degree[drawing])
    count = degree.clamp(max=fanout)
    entries = start[:, None] + drawn
    whole = bool((degree >= fanout).all())
    entries = entries.view(-1) if whole else entries[column < count[:, None]]
    edges = P.take(targets, offsets(count), entries)
    return Sample(P.own_rows(targets), edges, degree.to(P.dtype) / count.clamp(min=1))


def _distinct(drawn: Tensor, upper: Tensor, degree: Tensor) -> Tensor:
    """The draws (rows, fanout) with what was taken replaced, in time linear in their number.

    degree: (rows,) neighbours of each row, above fanout
    """
    marks = offsets(degree)
    taken = torch.zeros(int(marks[-1]), dtype=torch.bool)
    # Column by column, and columns in one piece of memory.
    columns, replacements = drawn.t().contiguous(), upper.t()
    for draw, replacement in zip(columns, replacements, strict=True):
        torch.where(taken[marks[:-1] + draw], replacement, draw, out=draw)
        taken[marks[:-1] + draw] = True
    return columns.t()
