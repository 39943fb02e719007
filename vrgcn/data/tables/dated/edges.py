"""Edges between dated kinds: each leads from what was known earlier to what became known later.

A relation with a dated end is one-way. A fact names entities, so that its edges are turned: from
the entity to the fact. Between two dated kinds each direction that some edge can have is a relation
of its own: facts of one moment, such as an order and its lines, tell each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vrgcn.data.tables.adjacency import EdgeFile
from vrgcn.data.tables.dated.times import Times
from vrgcn.graph.dated import ALWAYS, NEVER, Float64s, Int64s

if TYPE_CHECKING:
    from vrgcn.data.tables.read_tables import ReadKind


class EdgesInTime(EdgeFile):
    """The edges of a file that lead forward in time, in one direction; see `EdgeFile`.

    turned: they lead from the targets in the file to its sources
    late: edges that would lead back in time in this direction
    number: of the relation; None for that of the file, which is then removed with the relation
    """

    def __init__(
        self, pairs: EdgeFile, time: Float64s, turned: bool, number: int | None = None
    ) -> None:
        vars(self).update(vars(pairs))
        self._time, self.turned = time, turned
        self._second = number is not None
        self.number = pairs.number if number is None else number
        forward = (self._forward(*chunk[:2], turned) for chunk in pairs.chunks())
        self.rows = sum(int(each.sum()) for each in forward)
        self.late = pairs.rows - self.rows

    @staticmethod
    def ways(pairs: EdgeFile, time: Float64s, number: int) -> list[EdgesInTime]:
        """The directions in which edges lead forward in time: both among facts of one moment. A
        second one comes first, and is relation `number`."""
        turned = EdgesInTime(pairs, time, True)
        given = EdgesInTime(pairs, time, False, number if turned.rows else None)
        return [given, turned] if given.rows and turned.rows else [given if given.rows else turned]

    def remove(self) -> None:
        if not self._second:
            super().remove()

    def _forward(self, source: Int64s, target: Int64s, turned: bool) -> NDArray[np.bool_]:
        first, then = (target, source) if turned else (source, target)
        return (self._time[first] <= self._time[then]) & (self._time[first] < NEVER)

    def chunks(self) -> Iterator[tuple[Int64s, Int64s, Float64s | None]]:
        for source, target, weight in super().chunks():
            keep = self._forward(source, target, self.turned)
            ends = (target[keep], source[keep]) if self.turned else (source[keep], target[keep])
            yield *ends, None if weight is None else weight[keep]


def node_times(times: Times, kinds: Sequence[ReadKind]) -> Float64s:
    """(nodes,) the time of each node, as in graph/dated.py. Past targets that no row has are never
    known, and neither are nodes that only edges name."""
    found = np.full(sum(len(kind.nodes.ids) for kind in kinds), ALWAYS)
    for kind in kinds:
        values = times.values.get(kind.source.name)
        if values is not None:
            own = found[kind.start : kind.start + len(kind.nodes.ids)]
            own[:] = NEVER
            own[: len(values)] = np.nan_to_num(values, nan=NEVER)
    return found


def forget_unknown_targets(times: Times, kinds: Sequence[ReadKind]) -> None:
    """Past targets of rows without a label are never known."""
    if times.rows.past is not None:
        labels = next(k.nodes.labels for k in kinds if k.source.name == times.rows.kind)
        if labels is not None:
            times.values[times.rows.past][~labels.known] = np.nan
