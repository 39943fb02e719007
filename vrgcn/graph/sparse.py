"""Compressed sparse rows: slicing rows out of a large matrix, and its product with a dense one.

One small value type serves for P, for a minibatch's sampled edges and for sparse features. The
functions below it tell the layouts of matrices apart: dense, sparse CSR, and blocks of both.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, TypeGuard

import numpy as np
import torch
from torch import Tensor

from vrgcn.graph.bags import BagProduct, bag_product
from vrgcn.graph.mapped import gather, is_mapped

if TYPE_CHECKING:
    from vrgcn.graph.blocks import Blocks

# Said once in every process that makes such a tensor; users of sparse features cannot act on it.
warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")

# A converged run is full of denormal numbers, which the CPU handles many times slower. PyTorch's
# worker threads take the setting over when they start, and never again: it comes before the first
# product.
torch.set_flush_denormal(True)


@dataclass(frozen=True)
class CSR:
    """A sparse matrix, row by row: diag(scale) times the matrix of `values`.

    indptr: (rows + 1,) int64, where each row starts in `indices`
    indices: (entries,) int64, the column of each entry
    values: (entries,) floating point; None if all are 1: less memory, and faster to read
    columns: how many columns the matrix has
    scale: (rows,) a factor for each row; None if all are 1
    """

    indptr: Tensor
    indices: Tensor
    values: Tensor | None
    columns: int
    scale: Tensor | None = None

    @property
    def num_rows(self) -> int:
        return len(self.indptr) - 1

    @property
    def num_entries(self) -> int:
        return len(self.indices)

    @cached_property
    def counts(self) -> Tensor:
        """(rows,) entries in each row."""
        return self.indptr.diff()

    @cached_property
    def one_each(self) -> bool:
        """Whether every row has one entry."""
        return self.num_entries == self.num_rows and bool((self.counts == 1).all())

    @property  # not cached: of the whole graph it is as large as `indices`
    def row_of_entry(self) -> Tensor:
        """(entries,) the row that each entry is in."""
        rows = torch.arange(self.num_rows, device=self.indptr.device)
        return self.spread(rows)

    def spread(self, x: Tensor) -> Tensor:
        """(rows,) -> (entries,): what belongs to a row, for each of its entries."""
        if self.one_each:
            return x
        return torch.repeat_interleave(x, self.counts, output_size=self.num_entries)

    def weights(self, dtype: torch.dtype | None = None) -> Tensor:
        """(entries,) each entry of the matrix, its row's scale included."""
        if self.scale is None:
            if self.values is not None:
                return self.values if dtype is None else self.values.to(dtype)
            return torch.ones(self.num_entries, dtype=dtype, device=self.indices.device)
        scale = self.spread(self.scale if dtype is None else self.scale.to(dtype))
        return scale if self.values is None else scale * self.values.to(scale.dtype)

    def rows(self, nodes: Tensor) -> CSR:
        """The given rows, in the given order: (len(nodes), columns)."""
        scale = None if self.scale is None else self.scale.index_select(0, nodes)
        return self.take(*self.entries(nodes), scale)

    def take(self, indptr: Tensor, entries: Tensor, scale: Tensor | None = None) -> CSR:
        """The entries at the given positions, as the rows that indptr makes of them."""
        # index_select: on the CPU three times as fast as indexing with brackets.
        indices = gather(self.indices, entries)
        values = None if self.values is None else gather(self.values, entries)
        return CSR(indptr, indices, values, self.columns, scale)

    def entries(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """Positions of the given rows' entries: their own indptr, and their places in `indices`."""
        start = self.indptr.index_select(0, nodes)
        return entries_from(start, self.indptr.index_select(0, nodes + 1) - start)

    def with_columns(self, indices: Tensor, columns: int) -> CSR:
        """The same entries in other columns of a matrix of another width."""
        return CSR(self.indptr, indices, self.values, columns, self.scale)

    def above(self, other: CSR) -> CSR:
        """These rows and then those of a matrix of as many columns, with values and a scale alike:
        (rows + other rows, columns)."""

        def stacked(mine: Tensor | None, others: Tensor | None) -> Tensor | None:
            return None if mine is None or others is None else torch.cat([mine, others])

        return CSR(
            torch.cat([self.indptr, other.indptr[1:] + self.num_entries]),
            torch.cat([self.indices, other.indices]),
            stacked(self.values, other.values),
            self.columns,
            stacked(self.scale, other.scale),
        )

    def diagonal_with(self, other: CSR) -> CSR:
        """These rows and then those of another matrix, its columns after ours: a block-diagonal
        matrix, (rows + other rows, columns + other columns). Neither has a scale."""
        lower = other.with_columns(other.indices + self.columns, self.columns + other.columns)
        return self.with_columns(self.indices, lower.columns).above(lower)

    def beside(self, other: CSR) -> CSR:
        """[self, other] side by side: (rows, columns + other columns), both without a scale."""
        mine = torch.arange(self.num_entries, device=self.indices.device)
        theirs = torch.arange(other.num_entries, device=self.indices.device)
        # In each row our entries come first: each is moved by their entries in the rows before.
        mine += self.spread(other.indptr[:-1])
        theirs += other.spread(self.indptr[1:])
        indices = self.indices.new_empty(self.num_entries + other.num_entries)
        indices[mine], indices[theirs] = self.indices, other.indices + self.columns
        dtype = next((m.values.dtype for m in (self, other) if m.values is not None), None)
        values = None
        if dtype is not None:
            values = torch.empty(len(indices), dtype=dtype, device=indices.device)
            values[mine], values[theirs] = self.weights(dtype), other.weights(dtype)
        return CSR(self.indptr + other.indptr, indices, values, self.columns + other.columns)

    def split(self, size: int) -> list[CSR]:
        """Runs of `size` rows, the last may be shorter. Views, but for their indptr."""
        starts = [*self.indptr[:-1:size].tolist(), self.num_entries]
        return [
            CSR(
                self.indptr[i * size : (i + 1) * size + 1] - start,
                self.indices[start:end],
                None if self.values is None else self.values[start:end],
                self.columns,
                None if self.scale is None else self.scale[i * size : (i + 1) * size],
            )
            for i, (start, end) in enumerate(pairwise(starts))
        ]

    @cached_property
    def transposed(self) -> CSR:
        """`transpose()`, remembered: the gradient of a product asks for it."""
        return self.transpose()

    def with_transposed(self, transposed: CSR) -> CSR:
        """The same matrix, whose transpose is known already, perhaps mapped from a file."""
        known = replace(self)
        known.__dict__["transposed"] = transposed
        return known

    def transpose(self) -> CSR:
        """(columns, rows). Entries of a column keep their order."""
        plain = self.values is None and self.scale is None
        if self.indices.device.type == "cpu":
            return self._counted(None if plain else self.weights())
        # Numbers of 16 bits are sorted three times as fast as those of 64, and those of 32 twice.
        order = torch.argsort(self.indices.to(_narrowest(self.columns)), stable=True)
        counts = torch.bincount(self.indices, minlength=self.columns)
        values = None if plain else self.weights().index_select(0, order)
        rows = self.row_of_entry.index_select(0, order)
        return CSR(offsets(counts), rows, values, self.num_rows)

    def _counted(self, weights: Tensor | None) -> CSR:
        """The transpose of the matrix with these weights by SciPy, which counts entries instead of
        sorting them: two to seven times as fast."""
        from scipy.sparse import csr_array  # here: it takes a quarter of PyTorch's time to import

        if weights is None:
            data = np.empty(self.num_entries, dtype=np.int8)  # of no meaning
        else:  # SciPy has no half precision
            data = weights.detach().to(full_precision(weights.dtype)).numpy()
        parts = (data, self.indices.numpy(), self.indptr.numpy())
        by_column = csr_array(parts, shape=(self.num_rows, self.columns)).tocsc()
        indptr, rows = (
            torch.from_numpy(part).long() for part in (by_column.indptr, by_column.indices)
        )
        values = None if weights is None else torch.from_numpy(by_column.data).to(weights.dtype)
        return CSR(indptr, rows, values, self.num_rows)

    def __matmul__(self, dense: Tensor) -> Tensor:
        """(rows, columns) @ (columns, width) -> (rows, width).

        In the dtype of `dense`; tables of half precision are read as they are and answered in
        float32. Gradients flow to `dense` alone. The product of a sparse CSR tensor, or of blocks,
        has their layout.
        """
        if in_blocks(dense):
            return dense.averaged(self)
        if dense.layout == torch.sparse_csr:
            return torch.sparse.mm(self.to_torch(dense.dtype), dense)
        if not (dense.requires_grad and torch.is_grad_enabled()):
            # The rows of a transposed matrix do not lie in one piece: ten times as slow.
            return bag_product(self, dense.contiguous())
        return BagProduct.apply(dense, self)

    def to(self, device: torch.device | str) -> CSR:
        if self.indices.device == torch.device(device):
            return self  # as tensors do
        return CSR(
            self.indptr.to(device),
            self.indices.to(device),
            None if self.values is None else self.values.to(device),
            self.columns,
            None if self.scale is None else self.scale.to(device),
        )

    def to_torch(self, dtype: torch.dtype | None = None) -> Tensor:
        shape = (self.num_rows, self.columns)
        return _sparse_csr_tensor(self.indptr, self.indices, self.weights(dtype), shape)

    @staticmethod
    def empty(rows: int, columns: int) -> CSR:
        """A matrix without entries."""
        none = torch.empty(0, dtype=torch.int64)
        return CSR(none.new_zeros(rows + 1), none, None, columns)

    @staticmethod
    def from_torch(tensor: Tensor) -> CSR:
        return CSR(
            tensor.crow_indices().long(),
            tensor.col_indices().long(),
            tensor.values(),
            tensor.shape[1],
        )


def _narrowest(count: int) -> torch.dtype:
    """The smallest type of integers that holds 0 to count - 1."""
    kinds = (torch.int16, torch.int32)
    return next((kind for kind in kinds if count <= torch.iinfo(kind).max), torch.int64)


def slices(first: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """Consecutive places from a first one of each row on: (places,) the row, and (places,) them."""
    rows = torch.repeat_interleave(torch.arange(len(counts)), counts)
    shift = torch.repeat_interleave(counts.cumsum(0) - counts - first, counts)
    return rows, torch.arange(len(rows)) - shift


def entries_from(start: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """Places of rows' entries, of each row so many from a first one on: their indptr, and them."""
    indptr = offsets(counts)
    total = int(indptr[-1])
    shift = torch.repeat_interleave(start - indptr[:-1], counts, output_size=total)
    return indptr, shift.add_(torch.arange(total, device=shift.device))


def offsets(counts: Tensor) -> Tensor:
    """Row sizes (rows,) to row starts (rows + 1,)."""
    indptr = torch.zeros(len(counts) + 1, dtype=torch.int64, device=counts.device)
    torch.cumsum(counts, 0, out=indptr[1:])
    return indptr


def full_precision(dtype: torch.dtype) -> torch.dtype:
    """The type to compute in: float32 for numbers that are kept in half precision."""
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype


def is_sparse(x: Tensor) -> bool:
    """Whether x is one sparse CSR tensor."""
    return x.layout == torch.sparse_csr


def in_blocks(x: Tensor) -> TypeGuard[Blocks]:
    """Whether x consists of blocks, dense and sparse ones."""
    return hasattr(x, "blocks")


def is_dense(x: Tensor) -> bool:
    """Whether x is one dense tensor."""
    return not is_sparse(x) and not in_blocks(x)


def layout_word(x: Tensor) -> str:
    """Words for a layout, to follow a number of columns; dense columns need none."""
    return " in blocks" if in_blocks(x) else " sparse" if is_sparse(x) else ""


def stored(x: Tensor) -> list[Tensor]:
    """The plain tensors that a matrix of any layout consists of."""
    if in_blocks(x):
        return list(x.parts())
    return [x.crow_indices(), x.col_indices(), x.values()] if is_sparse(x) else [x]


def sparse_columns(x: Tensor) -> CSR | None:
    """The columns that are stored sparse, side by side, for all rows; None if there is none."""
    if in_blocks(x):
        return x.sparse_columns()
    return CSR.from_torch(x) if is_sparse(x) else None


def dense_width(x: Tensor) -> float:
    """Numbers that are stored densely, per row."""
    if in_blocks(x):
        return sum(dense_width(b.values) * b.num_rows for b in x.blocks) / x.shape[0]
    return 0 if is_sparse(x) else x.shape[1]


def num_entries(x: Tensor) -> int:
    """Numbers that a product with x touches: all of dense columns, the stored ones of sparse
    columns."""
    if in_blocks(x):
        return sum(num_entries(block.values) for block in x.blocks)
    return x.values().numel() if is_sparse(x) else x.numel()


def product(x: Tensor, weight: Tensor) -> Tensor:
    """x @ weight, (rows, columns) @ (columns, width), for x of any layout."""
    return CSR.from_torch(x) @ weight if is_sparse(x) else x @ weight


def select_rows(x: Tensor, nodes: Tensor) -> Tensor:
    """Rows of a matrix of any layout, in the same layout."""
    if in_blocks(x):
        return x.select_rows(nodes)
    if is_sparse(x):
        copied = x.col_indices().dtype == torch.int32 and nodes.device.type == "cpu"
        return _copied_rows(x, nodes) if copied else CSR.from_torch(x).rows(nodes).to_torch()
    return gather(x, nodes)


def for_rows(x: Tensor) -> Tensor:
    """The same matrix, of which `select_rows` reads rows faster: a sparse one in memory gets places
    of 32 bits, where they are enough."""
    if in_blocks(x):
        return x.map(for_rows)
    if not is_sparse(x) or x.device.type != "cpu" or is_mapped(x.values()):
        return x
    if max(x.values().numel(), *x.shape) > torch.iinfo(torch.int32).max:
        return x
    places = (x.crow_indices().int(), x.col_indices().int())
    return _sparse_csr_tensor(*places, x.values(), tuple(x.shape))


def _copied_rows(x: Tensor, nodes: Tensor) -> Tensor:
    """Rows of a matrix with places of 32 bits by SciPy, which copies a row at a time: up to ten
    times as fast as entry by entry."""
    from scipy.sparse import csr_array  # see `CSR._counted`

    parts = (x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy())
    copied = csr_array(parts, shape=tuple(x.shape))[nodes.numpy()]
    indptr, indices = (torch.from_numpy(part).long() for part in (copied.indptr, copied.indices))
    return _sparse_csr_tensor(indptr, indices, torch.from_numpy(copied.data), copied.shape)


def select_columns(x: Tensor, columns: Tensor) -> Tensor:
    """Columns of a matrix of any layout, in the given order and the same layout."""
    if in_blocks(x):
        return x.select_columns(columns)
    if not is_sparse(x):
        return x.index_select(1, columns)
    matrix = CSR.from_torch(x)
    place = torch.full((matrix.columns,), -1, dtype=torch.int64, device=x.device)
    place[columns] = torch.arange(len(columns), device=x.device)
    indices = place[matrix.indices]
    kept = indices >= 0
    counts = torch.bincount(matrix.row_of_entry[kept], minlength=matrix.num_rows)
    chosen = CSR(offsets(counts), indices[kept], x.values()[kept], len(columns))
    return chosen.to_torch()


def first_rows(x: Tensor, count: int) -> Tensor:
    """`x[:count]` for a matrix of any layout."""
    if in_blocks(x):
        return x.first_rows(count)
    if not is_sparse(x):
        return x[:count]
    matrix = CSR.from_torch(x)
    end = int(matrix.indptr[count])
    shape = (count, x.shape[1])
    return _sparse_csr_tensor(
        matrix.indptr[: count + 1], matrix.indices[:end], x.values()[:end], shape
    )


def spread_rows(x: Tensor, places: Tensor, count: int) -> Tensor:
    """(count, columns): the rows of x, of any layout, at ascending places; the others are zero."""
    if in_blocks(x):
        return x.spread_rows(places, count)
    if not is_sparse(x):
        return x.new_zeros((count, *x.shape[1:])).index_copy(0, places, x)
    matrix = CSR.from_torch(x)
    counts = torch.zeros(count, dtype=torch.int64, device=x.device)
    counts[places] = matrix.counts
    return _sparse_csr_tensor(offsets(counts), matrix.indices, x.values(), (count, x.shape[1]))


def stacked(matrices: Sequence[CSR]) -> CSR:
    """The rows of all matrices, of as many columns each, one matrix after the other."""
    if len(matrices) == 1:
        return matrices[0]
    starts = [0, *accumulate(m.num_entries for m in matrices)]
    indptr = [m.indptr[1:] + start for m, start in zip(matrices, starts, strict=False)]
    indices = torch.cat([m.indices for m in matrices])
    zero, columns = matrices[0].indptr[:1], matrices[0].columns
    values, scale = None, None
    if all(m.values is None and m.scale is not None for m in matrices):
        scale = torch.cat([m.scale for m in matrices if m.scale is not None])
    elif any(m.values is not None or m.scale is not None for m in matrices):
        kinds = (m.scale if m.values is None else m.values for m in matrices)
        dtype = next(kind.dtype for kind in kinds if kind is not None)
        values = torch.cat([m.weights(dtype) for m in matrices])
    return CSR(torch.cat([zero, *indptr]), indices, values, columns, scale)


def scale_rows(scale: Tensor | float, x: Tensor) -> Tensor:
    """diag(scale) @ x for x of any layout; one number scales all rows."""
    if not isinstance(scale, Tensor):
        if scale == 1:
            return x
        if in_blocks(x):
            return x.map(lambda values: scale_rows(scale, values))
        return with_values(x, x.values() * scale) if is_sparse(x) else x * scale
    if in_blocks(x):
        return x.scale_rows(scale)
    if not is_sparse(x):
        return scale.to(x.dtype)[:, None] * x
    matrix = CSR.from_torch(x)
    return with_values(x, matrix.weights() * matrix.spread(scale.to(x.dtype)))


def with_values(x: Tensor, values: Tensor) -> Tensor:
    """The sparse CSR tensor x with other values at the same places."""
    return _sparse_csr_tensor(x.crow_indices(), x.col_indices(), values, tuple(x.shape))


def concatenate(left: Tensor, right: Tensor) -> Tensor:
    """[left, right] side by side: one dense tensor of dense ones, else blocks."""
    if is_dense(left) and is_dense(right):
        return torch.cat([left, right], dim=-1)
    from vrgcn.graph.blocks import Blocks  # which is made of what is in this file

    return Blocks.beside([left, right])


def _sparse_csr_tensor(
    indptr: Tensor, indices: Tensor, values: Tensor, shape: tuple[int, ...]
) -> Tensor:
    # The parts come from matrices that were checked on the way in; checking again costs a pass.
    return torch.sparse_csr_tensor(indptr, indices, values, size=shape, check_invariants=False)
