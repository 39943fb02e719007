"""A block of a matrix: dense or sparse values, and the rows and columns where they are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from vrgcn.graph.sparse import CSR, is_sparse, offsets


@dataclass(frozen=True)
class Block:
    """values: (rows, width), dense or sparse CSR
    column: the place of its first column
    row: the place of its first row
    places: (rows,) ascending, the place of each row, where they do not follow each other; then
        `row` has no meaning
    """

    values: Tensor
    column: int = 0
    row: int = 0
    places: Tensor | None = None

    @cached_property
    def matrix(self) -> CSR:
        """Sparse values as a CSR, which remembers its transpose."""
        return CSR.from_torch(self.values)

    @property
    def num_rows(self) -> int:
        return self.values.shape[0]

    @property
    def width(self) -> int:
        return self.values.shape[1]

    @property
    def sparse(self) -> bool:
        return is_sparse(self.values)

    def times(self, weight: Tensor) -> Tensor:
        """values @ weight: (rows, width) @ (width, out)."""
        return self.matrix @ weight if self.sparse else self.values @ weight

    def transposed_times(self, y: Tensor) -> Tensor:
        """Transposed values @ y: (width, rows) @ (rows, out)."""
        return self.matrix.transposed @ y if self.sparse else self.values.t() @ y

    @property
    def columns(self) -> slice:
        return slice(self.column, self.column + self.width)

    def covers(self, rows: int) -> bool:
        """Whether it has all rows of a matrix of so many."""
        return self.places is None and self.row == 0 and self.num_rows == rows

    def rows_of(self, x: Tensor) -> Tensor:
        """The rows of (all rows, ...) at the places of its own."""
        if self.places is not None:
            return x.index_select(0, self.places)
        return x if self.covers(x.shape[0]) else x[self.row : self.row + self.num_rows]

    def find(self, nodes: Tensor) -> Tensor:
        """(len(nodes),) its own row of each row of the matrix, -1 where it has none."""
        if self.places is None:
            own = nodes - self.row
            return own.masked_fill_((own < 0) | (own >= self.num_rows), -1)
        if not len(self.places):
            return torch.full_like(nodes, -1)
        own = torch.searchsorted(self.places, nodes).clamp_(max=len(self.places) - 1)
        return own.masked_fill_(self.places[own] != nodes, -1)


def all_rows(block: Block, rows: int) -> Block:
    """The same block with all rows of the matrix."""
    if block.covers(rows):
        return block
    find = block.find(torch.arange(rows, device=block.values.device))
    values = block.values
    if is_sparse(values):
        own = CSR.from_torch(values)
        counts = torch.zeros(rows, dtype=torch.int64, device=values.device)
        counts[find >= 0] = own.counts
        full = CSR(offsets(counts), own.indices, own.values, own.columns).to_torch()
    else:
        full = values.new_zeros((rows, block.width))
        full[find >= 0] = values
    return Block(full, block.column)
