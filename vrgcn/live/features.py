"""Features that change: rows of a table where they are dense, else rows beside the graph's own."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from vrgcn.engine.averages import FULL
from vrgcn.graph.blocks import Blocks
from vrgcn.graph.mapped import gather, zeros
from vrgcn.graph.propagation import Propagation
from vrgcn.graph.sparse import (
    CSR,
    entries_from,
    full_precision,
    in_blocks,
    is_dense,
    is_sparse,
    num_entries,
    offsets,
    scale_rows,
    select_rows,
    spread_rows,
)
from vrgcn.live.rows import Pool
from vrgcn.live.slots import Slots, Undo

_ROWS = 65_536  # that are copied at a time
_COUNTED = 256  # nodes whose rows of P X are counted


class LiveFeatures(Protocol):
    """(slots, columns), scaled as the model takes them."""

    dtype: torch.dtype
    width: int
    waste: int  # entries that are kept and belong to no row any longer

    def rows(self, nodes: Tensor) -> Tensor:
        """(len(nodes), columns), in the layout of the graph's features."""

    def product(self, matrix: CSR) -> Tensor:
        """matrix @ features, in that layout."""

    def set(self, nodes: Tensor, rows: Tensor, undo: Undo) -> None:
        """Replace the rows of some nodes. rows: of any layout"""


def live_features(features: Tensor, slots: Slots, file: Path | None) -> LiveFeatures:
    """file: for a table of dense features; None: memory"""
    if is_dense(features):
        return DenseFeatures(features, slots, file)
    return SparseFeatures(features, slots)


class DenseFeatures:
    """One table with a row for each slot."""

    waste = 0

    def __init__(self, features: Tensor, slots: Slots, file: Path | None) -> None:
        self.dtype, self.width = features.dtype, features.shape[1]
        self.table = zeros((slots.total, self.width), features.dtype, file)
        start = 0
        for part in slots.of_graph().split(_ROWS):
            self.table[part] = features[start : start + len(part)]
            start += len(part)

    def rows(self, nodes: Tensor) -> Tensor:
        return gather(self.table, nodes)

    def product(self, matrix: CSR) -> Tensor:
        return matrix @ self.table

    def set(self, nodes: Tensor, rows: Tensor, undo: Undo) -> None:
        undo.write(self.table, nodes, rows)


class SparseFeatures:
    """The graph's features as they are, sparse or in blocks, and the stored entries of those rows
    that were changed or added."""

    def __init__(self, features: Tensor, slots: Slots) -> None:
        self.dtype, self.width = features.dtype, features.shape[1]
        self._base = features
        # The row of the graph's features; if it is -1 there is none, below that the row -2 - place
        # of the new ones.
        self._place = slots.numbers()
        self._start, self._count = Pool(torch.int64), Pool(torch.int64)
        self._columns, self._values = Pool(torch.int64), Pool(features.dtype)
        self.waste = 0

    def rows(self, nodes: Tensor) -> Tensor:
        places = self._place.index_select(0, nodes)
        if bool((places >= 0).all()):
            return select_rows(self._base, places)
        old = (places >= 0).nonzero()[:, 0]
        new = (places < -1).nonzero()[:, 0]
        known = select_rows(self._base, places[old])
        added = self._new(-2 - places[new]).to_torch()
        if in_blocks(self._base):
            parts = [spread_rows(x, at, len(nodes)) for x, at in ((known, old), (added, new))]
            blocks = [block for part in parts for block in Blocks.of(part).blocks]
            return Blocks((len(nodes), self.width), blocks)
        both = CSR.from_torch(known).above(CSR.from_torch(added))
        order = torch.full((len(nodes),), both.num_rows)
        order[old] = torch.arange(len(old))
        order[new] = len(old) + torch.arange(len(new))
        empty = CSR(both.indptr.new_zeros(2), both.indices[:0], both.values[:0], self.width)  # type: ignore[index]
        return both.above(empty).rows(order).to_torch()

    def product(self, matrix: CSR) -> Tensor:
        places = self._place.index_select(0, matrix.indices)
        if bool((places >= 0).all()):
            return matrix.with_columns(places, self._base.shape[0]) @ self._base
        near, at = torch.unique(matrix.indices, return_inverse=True)
        return matrix.with_columns(at, len(near)) @ self.rows(near)

    def set(self, nodes: Tensor, rows: Tensor, undo: Undo) -> None:
        dense = rows.to_dense()
        row, column = dense.nonzero(as_tuple=True)
        lengths = len(self._start), len(self._columns)
        counts = torch.bincount(row, minlength=len(nodes))
        first = self._columns.append(column)
        self._values.append(dense[row, column].to(self.dtype))
        self._start.append(first + offsets(counts)[:-1])
        place = self._count.append(counts)
        again = self._place[nodes]
        waste = int(self._count.values[-2 - again[again < -1]].sum())
        self.waste += waste
        undo.add(lambda: self._cut(*lengths, waste))
        undo.write(self._place, nodes, -2 - (place + torch.arange(len(nodes))))

    def _cut(self, rows: int, entries: int, waste: int) -> None:
        self.waste -= waste
        self._start.cut(rows)
        self._count.cut(rows)
        self._columns.cut(entries)
        self._values.cut(entries)

    def _new(self, places: Tensor) -> CSR:
        """Rows that were changed or added, by their places among these."""
        start, counts = self._start.values[places], self._count.values[places]
        indptr, entries = entries_from(start, counts)
        columns, values = self._columns.values[entries], self._values.values[entries]
        return CSR(indptr, columns, values, self.width)


class LiveAverages:
    """Rows of P X. A dense table of them is kept; what a change makes wrong is computed anew when
    it is next asked for.

    file: for that table; None: memory
    """

    def __init__(
        self, P: Propagation, features: LiveFeatures, slots: Slots, file: Path | None
    ) -> None:
        self.P = P
        self._features = features
        self._table: Tensor | None = None
        if P.spans is None and self._dense(slots):
            self._table = zeros((slots.total, features.width), features.dtype, file)
            self._known = torch.zeros(slots.total, dtype=torch.bool)

    def _dense(self, slots: Slots) -> bool:
        """Whether rows are dense, or at least so full that they are better dense."""
        if isinstance(self._features, DenseFeatures):
            return True
        nodes = slots.of_graph()
        some = self._product(nodes[:: max(1, len(nodes) // _COUNTED)])
        return is_sparse(some) and num_entries(some) > FULL * some.shape[0] * some.shape[1]

    def rows(self, nodes: Tensor, *, keep: bool) -> Tensor:
        if self._table is None:
            rows = self._product(nodes)
        else:
            missing = nodes[~self._known[nodes]]
            if len(missing):
                self._table[missing] = self._product(missing).to_dense()
                self._known[missing] = True
            rows = gather(self._table, nodes)
        return rows.to(full_precision(rows.dtype))

    def forget(self, nodes: Tensor, undo: Undo) -> None:
        """Rows that are no longer right."""
        if self._table is None:
            return
        known = nodes[self._known[nodes]]
        undo.write(self._table, known, self._table[known])
        undo.write(self._known, nodes, torch.zeros(len(nodes), dtype=torch.bool))

    def _product(self, nodes: Tensor) -> Tensor:
        """In the precision of the features, whether it is then kept or not."""
        others = self._features.product(self.P.rows(nodes))
        own = self.P.own_rows(nodes)
        if not isinstance(own, Tensor) and own == 0:
            return others.to(self._features.dtype)
        rows = self._features.rows(nodes)
        rows = scale_rows(own, rows.to(full_precision(rows.dtype)))
        return torch.add(rows, others).to(self._features.dtype)
