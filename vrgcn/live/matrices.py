"""P of edges that change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from vrgcn.graph.propagation import Propagation, Sides, Sums
from vrgcn.graph.relations import kept_entries
from vrgcn.graph.sparse import CSR
from vrgcn.live.edges import HalfEdges, LiveEdges
from vrgcn.live.slots import Undo

_NOTHING = torch.empty(0, dtype=torch.int64)


@dataclass(frozen=True, eq=False, kw_only=True)
class LivePropagation(Propagation):
    """P whose rows are read from edges that change, and whose vectors are written in place.

    into: rows of A; None for P = I
    looped: (slots,) bool, whose entries A has on its diagonal, which P keeps apart; None: of none
    slots: how many there are
    """

    into: HalfEdges | None
    looped: Tensor | None
    slots: int

    @property
    def num_nodes(self) -> int:
        return self.slots

    def degrees(self, nodes: Tensor) -> Tensor:
        if self.into is None:
            return torch.zeros_like(nodes)
        counts = self.into.rows.counts(nodes)
        if self.looped is None:
            return counts
        return counts - self.looped.index_select(0, nodes).long()

    def rows(self, nodes: Tensor) -> CSR:
        if self.into is None:
            return CSR.empty(len(nodes), self.slots)
        part = self.into.rows.rows(nodes)
        if self.looped is not None and bool(self.looped.index_select(0, nodes).any()):
            part = kept_entries(part, part.indices != nodes[part.row_of_entry])
        values = None if part.values is None else part.values.to(self.dtype)
        if self.right is not None:
            right = self.right.index_select(0, part.indices)
            values = right if values is None else values * right
        scale = None if self.left is None else self.left.index_select(0, nodes)
        return CSR(part.indptr, part.indices, values, part.columns, scale)


@dataclass(frozen=True)
class _SumsOf:
    """Sums of some nodes."""

    rows: Tensor
    columns: Tensor
    loops: Tensor | None


class LiveMatrix:
    """P by a rule over some edges, in one direction.

    edges: whose direction this is, or the other one (reverse)
    sides: from sums to the vectors of P; None: P = I
    spans: as in `Propagation`
    """

    def __init__(
        self,
        edges: LiveEdges | None,
        sides: Callable[[Sums], Sides] | None,
        slots: int,
        dtype: torch.dtype,
        *,
        reverse: bool = False,
        spans: tuple[range, range] | None = None,
    ) -> None:
        self.edges = edges
        self.sides = sides
        self.spans = spans
        self.reverse = reverse
        self._slots, self._dtype = slots, dtype
        self.into = self.out = None
        if edges is not None and sides is not None:
            self.into, self.out = (edges.out, edges.into) if reverse else (edges.into, edges.out)
        vectors = self._vectors(torch.arange(slots))
        self._own, self._left, self._right = (
            torch.zeros(slots, dtype=dtype) if vector is None else vector for vector in vectors
        )
        self._has = [vector is not None for vector in vectors]
        self._own_always = sides is not None and self._has_own_without_loops(sides)

    @property
    def P(self) -> LivePropagation:  # noqa: N802
        """The matrix as it is; its vectors and rows go with the changes."""
        looped = None
        if self.edges is not None and self.into is not None and self.edges.num_loops:
            looped = self.edges.looped
        own: Tensor | float = self._own
        if self.into is None:
            own = 1.0
        elif not self._own_always and looped is None:
            own = 0.0
        return LivePropagation(
            own,
            self._left if self._has[1] else None,
            CSR.empty(0, 0),
            self._right if self._has[2] else None,
            self._dtype,
            self.spans,
            into=self.into,
            looped=looped,
            slots=self._slots,
        )

    def update(self, rows: Tensor, columns: Tensor, undo: Undo) -> Tensor:
        """Bring the vectors up to date, and return the rows of P that changed.

        rows, columns: of this matrix, that edits are in
        """
        if self.into is None or self.out is None:
            return _NOTHING
        touched = torch.cat([rows, columns]).unique()
        own, left, right = self._vectors(touched)
        dirty = [rows]
        for vector, new in ((self._own, own), (self._left, left)):
            if new is not None:
                dirty.append(touched[vector[touched] != new])
                undo.write(vector, touched, new)
        if right is not None:
            heavier = touched[self._right[touched] != right]
            undo.write(self._right, touched, right)
            dirty.append(self.reach(heavier))
        return torch.cat(dirty).unique()

    def reach(self, nodes: Tensor) -> Tensor:
        """The nodes whose rows of P have an entry at some of these."""
        if self.out is None or not len(nodes):
            return _NOTHING
        return self.out.rows.rows(nodes).indices.unique()

    def _vectors(self, nodes: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        """own, left and right of some nodes; None if P has no such vector."""
        if self.into is None or self.out is None or self.sides is None or self.edges is None:
            return None, None, None
        loops = self.edges.loops[nodes]
        sides = self.sides(_SumsOf(self.into.sums[nodes], self.out.sums[nodes], loops))
        own, left, right = (
            side.to(self._dtype) if isinstance(side, Tensor) else None for side in sides
        )
        return own, left, right

    @staticmethod
    def _has_own_without_loops(sides: Callable[[Sums], Sides]) -> bool:
        one = torch.ones(1, dtype=torch.float64)
        return isinstance(sides(_SumsOf(one, one, None))[0], Tensor)
