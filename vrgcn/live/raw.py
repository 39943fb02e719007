"""Raw features, before any scaling: the graph's own, and those of rows that changed."""

from __future__ import annotations

from functools import partial

import numpy as np
import torch
from torch import Tensor

from vrgcn.graph.block import Block
from vrgcn.graph.blocks import Blocks
from vrgcn.graph.graph import Graph
from vrgcn.graph.names import Names
from vrgcn.graph.sparse import CSR, in_blocks, is_sparse, offsets, select_rows
from vrgcn.inference.saved import SavedModel, fit_features
from vrgcn.live.row_features import Numbers
from vrgcn.live.slots import Slots, Undo

_NOTHING = torch.empty(0, dtype=torch.int64)


class RawFeatures:
    """Features as a graph is saved with them, and what a model's scaling makes of new rows.

    graph: as it was loaded
    """

    def __init__(self, saved: SavedModel, graph: Graph, slots: Slots) -> None:
        self._saved = saved
        self._graph = graph
        self._slots = slots
        self._new: dict[int, tuple[np.ndarray, Numbers]] = {}  # columns that are not zero

    def columns(self, kind: str) -> range:
        """The columns of a kind's features among those of all."""
        return self._graph.kinds.columns(kind)

    def row(self, slot: int) -> Numbers:
        """(columns of its kind,) the features of a slot."""
        kind = self._slots.kind_of(slot)
        own = self.columns(kind)
        row = np.zeros(len(own))
        if slot in self._new:
            places, values = self._new[slot]
            row[places] = values
            return row
        place = self._slots.number(slot)
        dense = select_rows(self._graph.features, torch.tensor([place])).to_dense()
        row[:] = dense[0, own.start : own.stop].double().numpy()
        return row

    def set(self, rows: dict[int, Numbers], undo: Undo) -> None:
        """Keep new rows."""
        for slot, row in rows.items():
            undo.add(partial(self._put, slot, self._new.get(slot)))
            places = np.flatnonzero(row)
            self._new[slot] = places, row[places]

    def _put(self, slot: int, before: tuple[np.ndarray, Numbers] | None) -> None:
        if before is None:
            del self._new[slot]
        else:
            self._new[slot] = before

    def scaled(self, kind: str, rows: Numbers) -> Tensor:
        """(rows, columns of all kinds) as the model takes them.

        rows: (rows, columns of the kind)
        """
        features = self._layout(kind, torch.from_numpy(rows).to(self._graph.features.dtype))
        count = len(rows)
        none = torch.empty(0, dtype=torch.int64)
        graph = Graph.from_parts(
            CSR.empty(count, count),
            features,
            None,
            {"train": none, "val": none, "test": none},
            self._graph.num_classes,
            Names(features=self._graph.names.features),
            self._graph.task,
        )
        return fit_features(self._saved, graph).features

    def _layout(self, kind: str, rows: Tensor) -> Tensor:
        """Rows of a kind in the layout of the graph's features, over the columns of all kinds."""
        features, own = self._graph.features, self.columns(kind)
        if is_sparse(features):
            return rows.to_sparse_csr()
        if not in_blocks(features):
            return rows
        blocks = []
        for block in features.blocks:
            first, last = block.columns.start - own.start, block.columns.stop - own.start
            if first < 0 or last > len(own) or not block.width:
                continue
            values = rows[:, first:last].contiguous()
            blocks.append(Block(values.to_sparse_csr() if block.sparse else values, block.column))
        return Blocks((len(rows), features.shape[1]), blocks)

    def all(self, slots: Tensor) -> Tensor:
        """(len(slots), columns) of some nodes, in the layout of the graph's features.

        slots: ascending
        """
        features, place = self._graph.features, self._slots.numbers()[slots]
        if not in_blocks(features):
            return self._filled(features, place, slots, range(self._graph.num_features))
        blocks = []
        for block in features.blocks:
            first = block.row if block.places is None else 0
            inside = torch.ones(len(slots), dtype=torch.bool)
            if block.places is None and block.num_rows:
                kind = self._slots.kind_of_number(first)
                start = self._slots.first(kind)
                inside = (slots >= start) & (slots < start + self._slots.room[kind])
            own = slots[inside]
            rows = block.find(place[inside]) if len(own) else place[:0]
            columns = range(block.columns.start, block.columns.stop)
            values = self._filled(block.values, rows, own, columns)
            blocks.append(Block(values, block.column, int(inside.long().argmax())))
        return Blocks((len(slots), features.shape[1]), blocks)

    def _filled(self, x: Tensor, rows: Tensor, slots: Tensor, columns: range) -> Tensor:
        """Rows of a matrix for some slots, those that changed with what they are now.

        x: dense or sparse, of some columns; rows: of x for each slot, -1 where it has none
        """
        known = torch.tensor(sorted(self._new), dtype=torch.int64)
        changed = known[torch.isin(known, slots)]
        at = torch.searchsorted(slots, changed)
        lacking = (rows < 0).nonzero()[:, 0]
        new = dict.fromkeys(lacking.tolist(), (_NOTHING, _NOTHING.double()))
        for place, slot in zip(at.tolist(), changed.tolist(), strict=True):
            places, values = self._full(slot)
            mine = (places >= columns.start) & (places < columns.stop)
            new[place] = places[mine] - columns.start, values[mine]
        if not len(x):
            x = torch.zeros((1, x.shape[1]), dtype=x.dtype)
        old = select_rows(x, rows.clamp(min=0))
        return _replaced(
            old, torch.tensor(sorted(new), dtype=torch.int64), [new[n] for n in sorted(new)]
        )

    def _full(self, slot: int) -> tuple[Tensor, Tensor]:
        """The entries of a changed row that are not zero: columns among all, and numbers."""
        places, values = self._new[slot]
        start = self.columns(self._slots.kind_of(slot)).start
        return torch.from_numpy(places) + start, torch.from_numpy(values)


def _replaced(x: Tensor, at: Tensor, rows: list[tuple[Tensor, Tensor]]) -> Tensor:
    """A matrix with other rows at some places: the columns that are not zero, and numbers."""
    if not rows:
        return x
    if is_sparse(x):
        return _replaced_sparse(x, at, rows)
    x[at] = 0
    for place, (columns, values) in zip(at.tolist(), rows, strict=True):
        x[place, columns] = values.to(x)
    return x


def _replaced_sparse(x: Tensor, at: Tensor, rows: list[tuple[Tensor, Tensor]]) -> Tensor:
    old = CSR.from_torch(x)
    counts = torch.tensor([len(columns) for columns, _ in rows], dtype=torch.int64)
    columns = torch.cat([old.indices[:0], *(columns for columns, _ in rows)])
    values = torch.cat([x.values()[:0], *(values.to(x.dtype) for _, values in rows)])
    both = old.above(CSR(offsets(counts), columns, values, old.columns))
    order = torch.arange(old.num_rows)
    order[at] = old.num_rows + torch.arange(len(rows))
    return both.rows(order).to_torch()
