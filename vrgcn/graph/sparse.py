"""Compressed sparse rows: slicing rows out of a large matrix, and its product with a dense one.

One small value type serves for P, for a minibatch's sampled edges and for sparse features. The
product is `embedding_bag`, which on the CPU is 2 to 10 times faster than the other ways PyTorch
offers and reads half-precision tables directly.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

# Said once in every process that makes such a tensor; users of sparse features cannot act on it.
warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")

# A converged run is full of denormal numbers, which the CPU handles many times slower. PyTorch's
# worker threads take the setting over when they start, and never again: it comes before the first
# product.
torch.set_flush_denormal(True)


@dataclass(frozen=True)
class CSR:
    """A sparse matrix, row by row.

    indptr: (rows + 1,) int64, where each row starts in `indices`
    indices: (entries,) int64, the column of each entry
    values: (entries,) floating point
    columns: how many columns the matrix has
    row_values: (rows,) where all entries of a row are the same, else None; quicker to repeat than
        to gather
    """

    indptr: Tensor
    indices: Tensor
    values: Tensor
    columns: int
    row_values: Tensor | None = None

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
        return torch.repeat_interleave(rows, self.counts, output_size=self.num_entries)

    def rows(self, nodes: Tensor) -> CSR:
        """The given rows, in the given order: (len(nodes), columns)."""
        indptr, entries = self.entries(nodes)
        if self.row_values is None:
            return self.take(indptr, entries)
        values = self.row_values.index_select(0, nodes).repeat_interleave(
            indptr.diff(), output_size=len(entries)
        )
        return CSR(indptr, self.indices.index_select(0, entries), values, self.columns)

    def take(self, indptr: Tensor, entries: Tensor) -> CSR:
        """The entries at the given positions, as the rows that indptr makes of them."""
        # index_select: on the CPU three times as fast as indexing with brackets.
        indices = self.indices.index_select(0, entries)
        return CSR(indptr, indices, self.values.index_select(0, entries), self.columns)

    def entries(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """Where the given rows' entries are: their own indptr, and their positions in `indices`."""
        start = self.indptr.index_select(0, nodes)
        counts = self.indptr.index_select(0, nodes + 1) - start
        indptr = offsets(counts)
        total = int(indptr[-1])
        shift = torch.repeat_interleave(start - indptr[:-1], counts, output_size=total)
        return indptr, shift.add_(torch.arange(total, device=shift.device))

    def with_columns(self, columns: int) -> CSR:
        """The same entries in a matrix of another width."""
        return CSR(self.indptr, self.indices, self.values, columns)

    def split(self, size: int) -> list[CSR]:
        """Runs of `size` rows, the last may be shorter. Views, but for their indptr."""
        starts = [*self.indptr[:-1:size].tolist(), self.num_entries]
        return [
            CSR(
                self.indptr[i * size : (i + 1) * size + 1] - start,
                self.indices[start:end],
                self.values[start:end],
                self.columns,
            )
            for i, (start, end) in enumerate(pairwise(starts))
        ]

    @cached_property
    def transposed(self) -> CSR:
        order = torch.argsort(self.indices, stable=True)
        counts = torch.bincount(self.indices, minlength=self.columns)
        return CSR(offsets(counts), self.row_of_entry[order], self.values[order], self.num_rows)

    def __matmul__(self, dense: Tensor) -> Tensor:
        """(rows, columns) @ (columns, width) -> (rows, width), in the dtype of `dense`.

        Gradients flow to `dense` alone. A sparse CSR tensor gives a sparse CSR tensor.
        """
        if dense.layout == torch.sparse_csr:
            return torch.sparse.mm(self.to_torch(dense.dtype), dense)
        if not (dense.requires_grad and torch.is_grad_enabled()):
            return _product(self, dense)
        return _Product.apply(dense, self)

    def to(self, device: torch.device | str) -> CSR:
        return CSR(
            self.indptr.to(device), self.indices.to(device), self.values.to(device), self.columns
        )

    def to_torch(self, dtype: torch.dtype | None = None) -> Tensor:
        values = self.values.to(dtype or self.values.dtype)
        shape = (self.num_rows, self.columns)
        return _sparse_csr_tensor(self.indptr, self.indices, values, shape)

    @staticmethod
    def from_torch(tensor: Tensor) -> CSR:
        return CSR(
            tensor.crow_indices().long(),
            tensor.col_indices().long(),
            tensor.values(),
            tensor.shape[1],
        )


def offsets(counts: Tensor) -> Tensor:
    """Row sizes (rows,) to row starts (rows + 1,)."""
    indptr = torch.zeros(len(counts) + 1, dtype=torch.int64, device=counts.device)
    torch.cumsum(counts, 0, out=indptr[1:])
    return indptr


def is_sparse(x: Tensor) -> bool:
    return x.layout == torch.sparse_csr


def select_rows(x: Tensor, nodes: Tensor) -> Tensor:
    """Rows of a dense or a sparse CSR tensor, in the same layout."""
    if is_sparse(x):
        return CSR.from_torch(x).rows(nodes).to_torch()
    return x.index_select(0, nodes)


def select_rows_beside(left: Tensor, right: Tensor, nodes: Tensor) -> tuple[Tensor, Tensor]:
    """Rows of two matrices, placed so that `concatenate` need not copy them."""
    mixed = left.dtype != right.dtype or left.device != right.device
    if is_sparse(left) or mixed or left.requires_grad or right.requires_grad:
        return select_rows(left, nodes), select_rows(right, nodes)
    width = left.shape[1]
    both = left.new_empty((len(nodes), width + right.shape[1]))
    torch.index_select(left, 0, nodes, out=both[:, :width])
    torch.index_select(right, 0, nodes, out=both[:, width:])
    # Not views to autograd: a change of one in place must not count as a change of the other.
    return both[:, :width].data, both[:, width:].data


def select_columns(x: Tensor, columns: Tensor) -> Tensor:
    """Columns of a dense or a sparse CSR tensor, in the given order and the same layout."""
    if not is_sparse(x):
        return x.index_select(1, columns)
    matrix = CSR.from_torch(x)
    place = torch.full((matrix.columns,), -1, dtype=torch.int64)
    place[columns] = torch.arange(len(columns))
    indices = place[matrix.indices]
    kept = indices >= 0
    counts = torch.bincount(matrix.row_of_entry[kept], minlength=matrix.num_rows)
    chosen = CSR(offsets(counts), indices[kept], matrix.values[kept], len(columns))
    return chosen.to_torch()


def first_rows(x: Tensor, count: int) -> Tensor:
    """`x[:count]` for a dense or a sparse CSR tensor."""
    if not is_sparse(x):
        return x[:count]
    matrix = CSR.from_torch(x)
    end = int(matrix.indptr[count])
    shape = (count, x.shape[1])
    return _sparse_csr_tensor(
        matrix.indptr[: count + 1], matrix.indices[:end], matrix.values[:end], shape
    )


def scale_rows(scale: Tensor, x: Tensor) -> Tensor:
    """diag(scale) @ x for a dense or a sparse CSR tensor."""
    if not is_sparse(x):
        return scale.to(x.dtype)[:, None] * x
    matrix = CSR.from_torch(x)
    return with_values(x, matrix.values * scale.to(x.dtype)[matrix.row_of_entry])


def with_values(x: Tensor, values: Tensor) -> Tensor:
    """The sparse CSR tensor x with other values at the same places."""
    return _sparse_csr_tensor(x.crow_indices(), x.col_indices(), values, tuple(x.shape))


def concatenate(left: Tensor, right: Tensor) -> Tensor:
    """[left, right] side by side, for dense or sparse CSR tensors.

    A view where they lie side by side already; see `select_rows_beside`.
    """
    if not is_sparse(left):
        beside = _beside(left, right)
        return torch.cat([left, right], dim=-1) if beside is None else beside
    return torch.cat([left.to_sparse_coo(), right.to_sparse_coo()], dim=1).to_sparse_csr()


def _beside(left: Tensor, right: Tensor) -> Tensor | None:
    """[left, right] as a view of the memory that holds them so already, if some does."""
    width = left.shape[1] + right.shape[1]
    if (
        left.requires_grad
        or right.requires_grad
        or left.dtype != right.dtype
        or left.shape[0] != right.shape[0]
        or left.untyped_storage().data_ptr() != right.untyped_storage().data_ptr()
        or right.storage_offset() != left.storage_offset() + left.shape[1]
        or left.stride() != (width, 1)
        or right.stride() != (width, 1)
    ):
        return None
    return left.as_strided((left.shape[0], width), (width, 1))


def _sparse_csr_tensor(
    indptr: Tensor, indices: Tensor, values: Tensor, shape: tuple[int, ...]
) -> Tensor:
    # The parts come from matrices that were checked on the way in; checking again costs a pass.
    return torch.sparse_csr_tensor(indptr, indices, values, size=shape, check_invariants=False)


def _product(matrix: CSR, dense: Tensor) -> Tensor:
    return F.embedding_bag(
        matrix.indices,
        dense,
        matrix.indptr,
        mode="sum",
        per_sample_weights=matrix.values.to(dense.dtype),
        include_last_offset=True,
    )


class _Product(torch.autograd.Function):
    """The product with its gradient, `matrix.transposed @ grad`.

    embedding_bag's own backward scatters row by row and takes 2 to 3 times as long on wide fields.
    """

    @staticmethod
    def forward(ctx, dense: Tensor, matrix: CSR) -> Tensor:  # type: ignore[no-untyped-def]
        ctx.matrix = matrix
        return _product(matrix, dense.contiguous())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None]:  # type: ignore[no-untyped-def]
        return _product(ctx.matrix.transposed, grad.contiguous()), None
