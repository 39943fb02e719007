"""The edges of one relation, forwards and backwards, with the sums that normalisation needs."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from vrgcn.graph.propagation import is_symmetric
from vrgcn.graph.sparse import CSR
from vrgcn.live.rows import EditableRows
from vrgcn.live.slots import Slots, Undo

# New weights by (row, column), that is by (target, source); None if the edge is gone.
EdgeEdits = dict[tuple[int, int], float | None]


class HalfEdges:
    """Rows of A, or of its transpose, and the sum of each, (slots,) float64."""

    def __init__(self, base: CSR, slots: Slots) -> None:
        self.rows = EditableRows(base, slots)
        self.sums = torch.zeros(slots.total, dtype=torch.float64)
        for part in slots.of_graph().split(65_536):
            self.sums[part] = _sums(self.rows.rows(part))

    def edit(self, edits: EdgeEdits, undo: Undo) -> Tensor:
        """Replace entries, and return the rows that they are in."""
        by_row: dict[int, dict[int, float | None]] = {}
        for (row, column), weight in edits.items():
            by_row.setdefault(row, {})[column] = weight
        for row, own in by_row.items():
            self.rows.edit(row, own, undo)
        touched = torch.tensor(sorted(by_row), dtype=torch.int64)
        undo.write(self.sums, touched, _sums(self.rows.rows(touched)))
        return touched


class LiveEdges:
    """Edges of one meaning.

    into: rows of A, by the nodes that edges end in; out: rows of its transpose. The same object
        where A is symmetric and stays so
    loops, looped: (slots,) float64, the diagonal; and whether there is an entry
    undirected: an edge that is added or removed counts in both directions
    """

    def __init__(self, A: CSR, slots: Slots, undirected: bool | None) -> None:
        symmetric = is_symmetric(A) if undirected is None else undirected
        self.undirected = symmetric
        self.into = HalfEdges(A, slots)
        self.out = self.into if symmetric else HalfEdges(A.transposed, slots)
        self.loops = torch.zeros(slots.total, dtype=torch.float64)
        self.looped = torch.zeros(slots.total, dtype=torch.bool)
        for part in slots.of_graph().split(65_536):
            rows = self.into.rows.rows(part)
            own = part.index_select(0, rows.row_of_entry)
            at = rows.indices == own
            self.loops[own[at]] = rows.weights(torch.float64)[at]
            self.looped[own[at]] = True
        self.num_loops = int(self.looped.sum())

    @property
    def num_edges(self) -> int:
        """Edges; one that counts in both directions is one."""
        entries = self.into.rows.num_entries
        return (entries + int(self.looped.sum())) // 2 if self.undirected else entries

    @property
    def weighted(self) -> bool:
        return self.into.rows.weighted

    def edit(self, edits: EdgeEdits, undo: Undo) -> tuple[Tensor, Tensor]:
        """Replace entries; return the rows and the columns of A that they are in.

        edits: of undirected edges, in both directions
        """
        rows = self.into.edit(edits, undo)
        columns = rows
        if self.out is not self.into:
            swapped = {(column, row): weight for (row, column), weight in edits.items()}
            columns = self.out.edit(swapped, undo)
        self._edit_loops(((r, w) for (r, c), w in edits.items() if r == c), undo)
        return rows, columns

    def _edit_loops(self, edits: Iterable[tuple[int, float | None]], undo: Undo) -> None:
        loops = dict(edits)
        if not loops:
            return
        before = self.num_loops
        nodes = torch.tensor(list(loops), dtype=torch.int64)
        weights = torch.tensor([weight or 0.0 for weight in loops.values()])
        there = torch.tensor([weight is not None for weight in loops.values()])
        self.num_loops += int(there.sum()) - int(self.looped[nodes].sum())
        undo.add(lambda: setattr(self, "num_loops", before))
        undo.write(self.loops, nodes, weights.double())
        undo.write(self.looped, nodes, there)


def _sums(rows: CSR) -> Tensor:
    if rows.values is None:
        return rows.counts.double()
    sums = torch.zeros(rows.num_rows, dtype=torch.float64)
    return sums.index_add_(0, rows.row_of_entry, rows.weights(torch.float64))
