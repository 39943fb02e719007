"""Large tables in memory, in files mapped into it, or kept beside the graph they are of."""

from __future__ import annotations

import errno
import mmap
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from math import prod
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from vrgcn.files.writing import explained
from vrgcn.graph.read_ahead import note_mapped

_HUGE = 4 << 20  # bytes: below, small pages do


def zeros(
    shape: tuple[int, ...],
    dtype: torch.dtype,
    file: Path | None = None,
    device: torch.device | str = "cpu",
) -> Tensor:
    """A table of zeros; in a new file where one is named, which is then on the CPU."""
    size = prod(shape) * dtype.itemsize
    if file is not None:
        _reserve(file, size)
        table = torch.from_file(str(file), shared=True, size=prod(shape), dtype=dtype)
        return note_mapped(table.view(shape))
    if torch.device(device).type != "cpu" or size < _HUGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        return torch.zeros(shape, dtype=dtype, device=device)
    return torch.frombuffer(_huge_pages(size), dtype=dtype).view(shape)


def _huge_pages(size: int) -> mmap.mmap:
    """Zeros in memory, in pages of 2 MB where the system has them: tables are read row by row in a
    random order, and looking up one small page after another takes a third of that time."""
    try:
        memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise MemoryError(f"no memory for a table of {size:,} bytes") from error
    with suppress(OSError):  # a system without them
        memory.madvise(mmap.MADV_HUGEPAGE)
    return memory


# Told how much of something is done, 0 to 1.
Tell = Callable[[float], None]


class Derived(Protocol):
    """Tables that follow from a graph on disk, kept beside it: computed once, in pieces."""

    def table(
        self,
        what: str,
        shape: tuple[int, ...],
        dtype: torch.dtype,
        fill: Callable[[Tensor, Tell], None],
    ) -> Tensor:
        """The table called `what`, mapped; computed by `fill`, given zeros, if it is not there."""

    def after(self, change: str) -> Derived:
        """The derived tables of the same graph after a change of its features, such as their
        scaling."""

    def telling(self, on_fill: Callable[[str, float], None]) -> Derived:
        """Return the same, with on_fill called with the name of the computation and the share that
        is done."""


def _reserve(file: Path, size: int) -> None:
    """A new file of zeros, with its room on the disk: one that is found to be missing when a page
    is written to ends the process (a bus error)."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)  # a new file reads as zeros, an old one as what it held
    with explained(file, size):
        # Asked first: a reservation that fails has taken all there was from everybody meanwhile.
        if size > shutil.disk_usage(file.parent).free:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            if size and hasattr(os, "posix_fallocate"):
                os.posix_fallocate(descriptor, 0, size)
        except OSError:
            file.unlink(missing_ok=True)
            raise
        finally:
            os.close(descriptor)
