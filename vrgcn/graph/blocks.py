"""Features that consist of blocks: dense and sparse columns side by side, or columns that only some
rows have.

Outside of its blocks the matrix is zero, and nothing is stored there. `Blocks` is a tensor to the
code that passes features on (`shape`, `to`, `+`, `@`, `F.linear`); the functions of sparse.py tell
its layout from others. Everything else that PyTorch offers is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from vrgcn.files.mistakes import InputError
from vrgcn.graph.block import Block, all_rows
from vrgcn.graph.sparse import (
    CSR,
    first_rows,
    is_sparse,
    offsets,
    scale_rows,
    select_columns,
    select_rows,
    with_values,
)


class Blocks(Tensor):
    """A matrix (rows, columns) that is the sum of its blocks, all of one dtype on one device.

    Blocks of a graph's features do not overlap.
    """

    blocks: tuple[Block, ...]

    @staticmethod
    def __new__(cls, shape: Sequence[int], blocks: Sequence[Block]) -> Blocks:
        first = blocks[0].values
        made: Blocks = torch.Tensor._make_wrapper_subclass(
            cls, tuple(shape), dtype=first.dtype, device=first.device
        )
        made.blocks = tuple(blocks)
        return made

    def __init__(self, shape: Sequence[int], blocks: Sequence[Block]) -> None:
        """Blocks(shape, blocks): at least one, each inside of the shape."""

    @staticmethod
    def of(x: Tensor) -> Blocks:
        """The same matrix in blocks: one, unless it is in blocks already."""
        return x if isinstance(x, Blocks) else Blocks(x.shape, [Block(x)])

    @staticmethod
    def beside(parts: Sequence[Tensor]) -> Tensor:
        """Return matrices with equally many rows side by side; a single one unchanged."""
        if len(parts) == 1:
            return parts[0]
        width, blocks = 0, []
        for part in parts:
            own = Blocks.of(part).blocks
            blocks += [replace(block, column=block.column + width) for block in own]
            width += part.shape[1]
        return Blocks((parts[0].shape[0], width), blocks)

    def map(self, change: Callable[[Tensor], Tensor]) -> Blocks:
        """The same blocks with changed values."""
        blocks = [replace(block, values=change(block.values)) for block in self.blocks]
        return Blocks(self.shape, blocks)

    def parts(self) -> Iterator[Tensor]:
        """The plain tensors that it consists of."""
        for block in self.blocks:
            if block.sparse:
                yield from (block.values.crow_indices(), block.values.col_indices())
            yield block.values.values() if block.sparse else block.values

    def sparse_columns(self) -> CSR | None:
        """The columns of sparse blocks side by side, for all rows; None if there is none."""
        beside: CSR | None = None
        for block in self.blocks:
            if block.sparse:
                own = CSR.from_torch(all_rows(block, self.shape[0]).values)
                beside = own if beside is None else beside.beside(own)
        return beside

    def select_rows(self, nodes: Tensor) -> Blocks:
        """The given rows, in the given order."""
        return Blocks((len(nodes), self.shape[1]), [self._rows(b, nodes) for b in self.blocks])

    def _rows(self, block: Block, nodes: Tensor) -> Block:
        if block.covers(self.shape[0]):
            return Block(select_rows(block.values, nodes), block.column)
        own = block.find(nodes)
        places = (own >= 0).nonzero()[:, 0]
        return Block(select_rows(block.values, own[places]), block.column, places=places)

    def spread_rows(self, places: Tensor, count: int) -> Blocks:
        """(count, columns): these rows at ascending places; the others are zero."""
        rows = torch.arange(self.shape[0], device=places.device)
        blocks = [
            Block(block.values, block.column, places=places[block.rows_of(rows)])
            for block in self.blocks
        ]
        return Blocks((count, self.shape[1]), blocks)

    def first_rows(self, count: int) -> Blocks:
        """The first `count` rows."""

        def first(block: Block) -> Block:
            if block.places is None:
                kept = min(max(count - block.row, 0), block.num_rows)
                row = min(block.row, count)
                return Block(first_rows(block.values, kept), block.column, row)
            kept = int(torch.searchsorted(block.places, count))
            values = first_rows(block.values, kept)
            return Block(values, block.column, places=block.places[:kept])

        return Blocks((count, self.shape[1]), [first(block) for block in self.blocks])

    def select_columns(self, columns: Tensor) -> Blocks:
        """Columns in the given order: of each block those that follow each other in it."""
        blocks = []
        for block in self.blocks:
            own = columns - block.column
            places = ((own >= 0) & (own < block.width)).nonzero()[:, 0]
            breaks = ((places.diff() != 1).nonzero()[:, 0] + 1).tolist()
            for start, end in pairwise([0, *breaks, len(places)]):
                run = places[start:end]
                if len(run):
                    values = select_columns(block.values, own[run])
                    blocks.append(replace(block, values=values, column=int(run[0])))
        return Blocks((self.shape[0], len(columns)), blocks or [self._nothing()])

    def _nothing(self) -> Block:
        return Block(torch.zeros(0, 0, dtype=self.dtype, device=self.device))

    def scale_rows(self, scale: Tensor) -> Blocks:
        """diag(scale) times the matrix."""
        blocks = [
            replace(block, values=scale_rows(block.rows_of(scale), block.values))
            for block in self.blocks
        ]
        return Blocks(self.shape, blocks)

    def above(self, other: Blocks) -> Blocks:
        """A block-diagonal matrix: these rows, then those of the other one in further columns."""
        rows, columns = self.shape
        below = [
            Block(
                block.values,
                block.column + columns,
                block.row + rows,
                None if block.places is None else block.places + rows,
            )
            for block in other.blocks
        ]
        shape = (rows + other.shape[0], columns + other.shape[1])
        return Blocks(shape, [*self.blocks, *below])

    def averaged(self, matrix: CSR) -> Blocks:
        """matrix @ self, block by block: in each the rows that have an entry of the matrix."""
        shape = (matrix.num_rows, self.shape[1])
        return Blocks(shape, [self._averaged(block, matrix) for block in self.blocks])

    def _averaged(self, block: Block, matrix: CSR) -> Block:
        if block.covers(self.shape[0]):
            return Block(matrix @ block.values, block.column)
        own = block.find(matrix.indices)
        kept = own >= 0
        counts = torch.bincount(matrix.row_of_entry[kept], minlength=matrix.num_rows)
        values = None if matrix.values is None else matrix.values[kept]
        part = CSR(offsets(counts), own[kept], values, block.num_rows, matrix.scale)
        if counts.all():
            return Block(part @ block.values, block.column)
        places = counts.nonzero()[:, 0]
        return Block(part.rows(places) @ block.values, block.column, places=places)

    def plus(self, other: Tensor, alpha: float = 1) -> Blocks:
        """self + alpha * other, of the same shape; blocks of the same columns become one."""
        if other.shape != self.shape:
            raise InputError(f"blocks of {tuple(self.shape)} and {tuple(other.shape)} do not add")
        blocks = list(self.blocks)
        for new in Blocks.of(scale_rows(alpha, other)).blocks:
            place = next((i for i, old in enumerate(blocks) if self._match(old, new)), None)
            if place is None:
                blocks.append(new)
            else:
                blocks[place] = self._sum(blocks[place], new)
        return Blocks(self.shape, blocks)

    @staticmethod
    def _match(one: Block, two: Block) -> bool:
        return one.columns == two.columns and one.sparse == two.sparse

    def _sum(self, one: Block, two: Block) -> Block:
        rows = self.shape[0]
        same = one.num_rows == two.num_rows and one.row == two.row
        if not (same and one.places is None and two.places is None):
            one, two = all_rows(one, rows), all_rows(two, rows)
        return replace(one, values=torch.add(one.values, two.values))

    def to_dense(self, *_: Any, **__: Any) -> Tensor:
        """One dense tensor."""
        dense = torch.zeros(self.shape, dtype=self.dtype, device=self.device)
        for block in self.blocks:
            values = block.values.to_dense()
            if block.places is None:
                dense[block.row : block.row + block.num_rows, block.columns] += values
            else:
                dense[:, block.columns].index_add_(0, block.places, values)
        return dense

    def to_sparse_csr(self, *_: Any, **__: Any) -> Tensor:
        """One sparse CSR tensor, of which dense blocks store all numbers that are not 0."""
        keys, values = [], []
        rows = torch.arange(self.shape[0], device=self.device)
        for block in self.blocks:
            own = block.matrix if block.sparse else CSR.from_torch(block.values.to_sparse_csr())
            keys.append(
                own.spread(block.rows_of(rows)) * self.shape[1] + own.indices + block.column
            )
            values.append(own.weights(self.dtype))
        key, order = torch.cat(keys).sort()
        counts = torch.bincount(key // self.shape[1], minlength=self.shape[0])
        indices = key % self.shape[1]
        return CSR(offsets(counts), indices, torch.cat(values)[order], self.shape[1]).to_torch()

    def __repr__(  # type: ignore[override]
        self, *, tensor_contents: Any = None
    ) -> str:
        parts = (
            f"{'sparse' if b.sparse else 'dense'} {tuple(b.values.shape)} at column "
            f"{b.column}" + ("" if b.covers(self.shape[0]) else ", some rows")
            for b in self.blocks
        )
        return f"Blocks({tuple(self.shape)}: {'; '.join(parts)})"

    def __deepcopy__(self, memo: Any) -> Blocks:
        return self.clone()  # type: ignore[return-value]

    def __reduce_ex__(self, protocol: Any) -> Any:
        return Blocks, (tuple(self.shape), self.blocks)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        known = _FUNCTIONS.get(func)
        if known is not None:
            return known(*args, **(kwargs or {}))
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        aten = torch.ops.aten
        if func in (aten.detach.default, aten.alias.default):
            return args[0].map(lambda values: values.detach())
        if func in (aten.clone.default, aten._to_copy.default):
            return _moved(func, args[0], **(kwargs or {}))
        raise TypeError(
            f"features in blocks of dense and sparse columns do not support {func}: multiply them "
            "by a linear layer first, or make them one matrix, x.to_dense()"
        )


def _moved(func: Any, x: Blocks, **options: Any) -> Blocks:
    """A copy of every block, of another dtype or on another device where the options say so."""
    options.pop("memory_format", None)
    if func is torch.ops.aten.clone.default:
        return x.map(lambda values: values.clone())
    device, dtype = options.get("device") or x.device, options.get("dtype") or x.dtype
    blocks = [
        replace(
            block,
            values=block.values.to(device, dtype),
            places=None if block.places is None else block.places.to(device),
        )
        for block in x.blocks
    ]
    return Blocks(x.shape, blocks)


class _Product(torch.autograd.Function):
    """x W for blocks x, with a gradient for W, (columns, out): each block meets its own rows of
    W."""

    @staticmethod
    def forward(ctx, weight: Tensor, x: Blocks) -> Tensor:  # type: ignore[no-untyped-def]
        ctx.x, ctx.shape = x, weight.shape
        y: Tensor | None = None
        for block in x.blocks:
            part = block.times(weight[block.columns])
            if y is None and block.covers(x.shape[0]):
                y = part
                continue
            if y is None:
                y = part.new_zeros((x.shape[0], part.shape[1]))
            if block.places is None:
                y[block.row : block.row + block.num_rows] += part
            else:
                y.index_add_(0, block.places, part)
        assert y is not None
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None]:  # type: ignore[no-untyped-def]
        blocks = sorted(ctx.x.blocks, key=lambda block: block.column)
        parts = [block.transposed_times(block.rows_of(grad)) for block in blocks]
        ends = [0, *(block.columns.stop for block in blocks)]
        starts = [*(block.columns.start for block in blocks), ctx.shape[0]]
        if ends == starts:  # no column is left out, none is in two blocks
            return torch.cat(parts), None
        of_weight = grad.new_zeros(ctx.shape)
        for block, part in zip(blocks, parts, strict=True):
            of_weight[block.columns] += part
        return of_weight, None


def _matmul(x: Tensor, weight: Tensor) -> Tensor:
    if not isinstance(x, Blocks) or isinstance(weight, Blocks) or weight.dim() != 2:
        raise TypeError("features in blocks are multiplied from the right by a dense matrix only")
    if weight.shape[0] != x.shape[1]:
        raise RuntimeError(f"{tuple(x.shape)} features do not meet {tuple(weight.shape)} weights")
    if not (weight.requires_grad and torch.is_grad_enabled()):
        return _Product.forward(_Nowhere(), weight, x)
    product: Tensor = _Product.apply(weight, x)
    return product


class _Nowhere:
    """A context that forgets with the product what its gradient would need."""


def _linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    y = _matmul(x, weight.t())
    return y if bias is None else y + bias


def _add(x: Tensor, other: Any, *, alpha: float = 1) -> Tensor:
    if not isinstance(x, Tensor) or not isinstance(other, Tensor):
        raise TypeError("features in blocks are added to matrices of the same shape only")
    return Blocks.of(x).plus(other, alpha)


def _subtract(x: Tensor, other: Any, *, alpha: float = 1) -> Tensor:
    return _add(x, other, alpha=-alpha)


def _dropout(x: Blocks, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Drops stored values, as of a sparse tensor."""
    if not training or p == 0:
        return x
    return x.map(lambda values: _drop(values, p))


def _drop(values: Tensor, p: float) -> Tensor:
    if is_sparse(values):
        return with_values(values, F.dropout(values.values(), p))
    return F.dropout(values, p)


def _at(x: Blocks, place: Any) -> Tensor:
    """x[:count], or x[nodes]."""
    if isinstance(place, slice) and not place.start and place.step is None:
        return x.first_rows(range(x.shape[0])[place].stop)
    if isinstance(place, Tensor) and place.dim() == 1:
        return x.select_rows(place.nonzero()[:, 0] if place.dtype == torch.bool else place)
    raise TypeError("features in blocks are indexed by x[:count] and x[nodes] only")


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    torch.matmul: _matmul,
    torch.mm: _matmul,
    Tensor.matmul: _matmul,
    Tensor.mm: _matmul,
    Tensor.__matmul__: _matmul,
    Tensor.__getitem__: _at,
    F.linear: _linear,
    F.dropout: _dropout,
    torch.add: _add,
    Tensor.add: _add,
    Tensor.__add__: _add,
    Tensor.__radd__: _add,
    torch.sub: _subtract,
    Tensor.sub: _subtract,
    Tensor.__sub__: _subtract,
}


def scale_columns(x: Tensor, scale: Tensor) -> Tensor:
    """Features of any layout with each column times a number of its own, (columns,)."""
    if isinstance(x, Blocks):
        blocks = [replace(b, values=scale_columns(b.values, scale[b.columns])) for b in x.blocks]
        return Blocks(tuple(x.shape), blocks)
    if is_sparse(x):
        return with_values(x, x.values() * scale[x.col_indices()])
    return x * scale
