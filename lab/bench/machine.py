"""The speed of this machine: products of matrices, and bytes moved, with PyTorch's own kernels."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from lab.harness.timing import seconds


def product(rows: int, inner: int, columns: int) -> tuple[Callable[[], float], int]:
    """Return a timer of (rows, inner) @ (inner, columns), and its floating-point operations."""
    a, b = torch.randn(rows, inner), torch.randn(inner, columns)
    out = torch.empty(rows, columns)
    return lambda: seconds(lambda: torch.mm(a, b, out=out)), 2 * rows * inner * columns


def copy(floats: int) -> tuple[Callable[[], float], int]:
    """Return a timer of copying this many float32, and the bytes that are read and written."""
    source, target = torch.randn(floats), torch.empty(floats)
    return lambda: seconds(lambda: target.copy_(source)), 8 * floats


def gather(table: Tensor, count: int) -> tuple[Callable[[], float], int]:
    """Return a timer of copying random rows of a table, others each time, and the bytes of one
    call."""
    generator = torch.Generator().manual_seed(0)
    out = torch.empty(count, table.shape[1], dtype=table.dtype)

    def timer() -> float:
        rows = torch.randint(table.shape[0], (count,), generator=generator)
        return seconds(lambda: torch.index_select(table, 0, rows, out=out))

    return timer, 2 * out.numel() * out.element_size()
