"""Rows of an adjacency that can be edited: the graph's own, never copied, and new versions of those
that have changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vrgcn.graph.mapped import gather
from vrgcn.graph.sparse import CSR, entries_from
from vrgcn.live.slots import Slots, Undo


class Pool:
    """(length, ...) numbers: appending costs what is appended, averaged over many times."""

    def __init__(self, dtype: torch.dtype, *shape: int) -> None:
        self._buffer = torch.empty((16, *shape), dtype=dtype)
        self._length = 0

    def __len__(self) -> int:
        return self._length

    @property
    def values(self) -> Tensor:
        return self._buffer[: self._length]

    def append(self, values: Tensor) -> int:
        """Append values, and return the place of the first."""
        start, end = self._length, self._length + len(values)
        if end > len(self._buffer):
            buffer = self._buffer.new_empty((max(end, 2 * start), *self._buffer.shape[1:]))
            buffer[:start] = self._buffer[:start]
            self._buffer = buffer
        self._buffer[start:end] = values
        self._length = end
        return start

    def cut(self, length: int) -> None:
        """Forget what was appended after the first `length`."""
        self._length = length


# The new weight of each column of a row; None: the entry is gone.
Edits = Mapping[int, float | None]


class EditableRows:
    """(slots, slots), columns ascending. Row u of the graph's matrix is that of u's slot, until it
    is edited: then it lies in a pool, behind all entries of the graph.

    base: the graph's matrix, by the numbers of its nodes
    """

    def __init__(self, base: CSR, slots: Slots) -> None:
        self._base = base
        self._total = slots.total
        self._numbered = len(slots.kinds) == 1  # slots are numbers
        self._slot = slots.of_graph()
        self._start = torch.zeros(slots.total, dtype=torch.int64)
        self._count = torch.zeros(slots.total, dtype=torch.int64)
        self._start[self._slot] = base.indptr[:-1]
        self._count[self._slot] = base.counts
        # The same numbers: one at a time they are read ten times as fast this way.
        self._starts, self._counts = self._start.numpy(), self._count.numpy()
        self._columns = Pool(torch.int64)
        self._values = None if base.values is None else Pool(base.values.dtype)
        self.waste = 0  # entries of the pool that no row has any longer

    @property
    def weighted(self) -> bool:
        return self._values is not None

    @property
    def num_entries(self) -> int:
        return int(self._count.sum())

    @property
    def num_base(self) -> int:
        """Entries of the graph's own matrix."""
        return self._base.num_entries

    def counts(self, nodes: Tensor) -> Tensor:
        """(len(nodes),) entries of each row."""
        return self._count.index_select(0, nodes)

    def rows(self, nodes: Tensor) -> CSR:
        """(len(nodes), slots)."""
        start = self._start.index_select(0, nodes)
        indptr, places = entries_from(start, self.counts(nodes))
        end = self._base.num_entries
        if not len(self._columns) or not bool((start >= end).any()):
            return CSR(indptr, *self._of_base(places), self._total)
        new = places >= end
        total = len(places)
        indices = torch.empty(total, dtype=torch.int64)
        values = None if self._values is None else self._values.values.new_empty(total)
        old_indices, old_values = self._of_base(places[~new])
        at = places[new] - end
        indices[~new], indices[new] = old_indices, self._columns.values[at]
        if values is not None and self._values is not None:
            assert old_values is not None
            values[~new], values[new] = old_values, self._values.values[at]
        return CSR(indptr, indices, values, self._total)

    def row(self, node: int) -> tuple[NDArray[np.int64], NDArray[Any] | None]:
        """The columns of one row, ascending, and its weights; None if all are 1."""
        start, count = int(self._starts[node]), int(self._counts[node])
        end = self._base.num_entries
        if start >= end:
            part = slice(start - end, start - end + count)
            columns = self._columns.values.numpy()[part]
            return columns, None if self._values is None else self._values.values.numpy()[part]
        part = slice(start, start + count)
        columns = self._base.indices[part].numpy()
        if not self._numbered:
            columns = self._slot.numpy()[columns]
        values = self._base.values
        return columns, None if values is None else values[part].numpy()

    def weight(self, node: int, column: int) -> float | None:
        """One entry; None if there is none."""
        columns, values = self.row(node)
        at = int(np.searchsorted(columns, column))
        if at == len(columns) or columns[at] != column:
            return None
        return 1.0 if values is None else float(values[at])

    def edit(self, node: int, edits: Edits, undo: Undo) -> None:
        """Replace some entries of a row."""
        columns, values = self.row(node)
        names = sorted(edits)
        named, weights = np.array(names, dtype=np.int64), [edits[column] for column in names]
        stays = np.ones(len(columns) + 1, dtype=bool)
        at = np.searchsorted(columns, named)
        there = columns[np.minimum(at, len(columns) - 1)] == named if len(columns) else at < 0
        stays[at[there]] = False
        stays = stays[:-1]
        added = np.array([weight is not None for weight in weights], dtype=bool)
        joined = np.concatenate([columns[stays], named[added]])
        order = np.argsort(joined, kind="stable")
        place = self._columns.append(torch.from_numpy(joined[order]))
        if self._values is not None and values is not None:
            new = np.array([weight for weight in weights if weight is not None], values.dtype)
            mixed = np.concatenate([values[stays], new])
            self._values.append(torch.from_numpy(mixed[order]))
        self._point(node, self._base.num_entries + place, len(joined), undo)

    def _point(self, node: int, start: int, count: int, undo: Undo) -> None:
        """Let a row be so many entries from a place on; they are the last of the pool."""
        old = int(self._starts[node]), int(self._counts[node])
        end = self._base.num_entries
        waste = old[1] if old[0] >= end else 0
        self._starts[node], self._counts[node] = start, count
        self.waste += waste

        def back() -> None:
            self._starts[node], self._counts[node] = old
            self.waste -= waste
            self._columns.cut(start - end)
            if self._values is not None:
                self._values.cut(start - end)

        undo.add(back)

    def _of_base(self, places: Tensor) -> tuple[Tensor, Tensor | None]:
        indices = gather(self._base.indices, places).long()
        if not self._numbered:
            indices = self._slot.index_select(0, indices)
        values = self._base.values
        return indices, None if values is None else gather(values, places)
