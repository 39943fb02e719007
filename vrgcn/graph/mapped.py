"""Large tables in memory, in files mapped into it, or kept beside the graph they are of.

A row of a mapped table that is not in memory comes with a page from the disk. If rows are touched
one by one, each waits for its own page; and since the system expects files to be read in order, it
reads up to megabytes around each, which evicts other pages if memory is short. So code that is
about to touch many rows names them first: their pages are read together, in the order of the file,
and nothing around them. It changes no number: if the system does not support it, rows are read when
touched. Other reads of a table go in order, and there the system's assumption is right.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from math import prod
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vrgcn.files.writing import explained

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

_PAGE = mmap.PAGESIZE
_RANGES = 1024  # in one call, at most
_GAP = 2  # pages: one between two others is read too, in one go
_CALLS = 32  # without anything read before it is taken that all pages are in memory
ENTRIES = 1 << 16  # rows to touch between two calls: pages of many more might not stay until then

_NORMAL, _RANDOM, _WILLNEED = (
    getattr(mmap, f"MADV_{name}", None) for name in ("NORMAL", "RANDOM", "WILLNEED")
)

_mapped: dict[int, int] = {}  # addresses of tables, and their bytes
_reading = {"blocks": -1, "calls": 0}


def note_mapped(table: Tensor) -> Tensor:
    """The table, known from now on to be mapped from a file. A place that is another tensor's
    later costs a little time: what is asked for is never more than advice."""
    if table.nbytes:
        _mapped[table.data_ptr()] = table.nbytes
    return table


def is_mapped(table: Tensor) -> bool:
    """Whether a table is mapped from a file. A GPU may have a table of the same size at an address
    where a file was mapped before."""
    return bool(_mapped) and table.is_cpu and _mapped.get(table.data_ptr()) == table.nbytes


@contextmanager
def read_ahead(table: Tensor, rows: Tensor) -> Iterator[None]:
    """Request the pages of some rows (count,) that are touched inside this context. For a mapped
    table, they are read first, unless they seem to be in memory; pages that are missing
    nevertheless are read without their surroundings."""
    if not is_mapped(table) or not len(rows):
        yield
        return
    start, size = table.data_ptr(), table.nbytes
    _expect(start, size, _RANDOM)
    if _worth_it():
        _advise(_ranges(start, size // len(table), rows.numpy()))
    try:
        yield
    finally:
        _expect(start, size, _NORMAL)  # reading all of it goes in order


def gather(table: Tensor, rows: Tensor) -> Tensor:
    """Rows (count,) of a table, (count, ...); of one that is mapped some at a time, read ahead."""
    if not is_mapped(table):
        return table.index_select(0, rows)
    pieces = []
    for some in rows.split(ENTRIES):
        with read_ahead(table, some):
            pieces.append(table.index_select(0, some))
    return pieces[0] if len(pieces) == 1 else torch.cat(pieces)


def _worth_it() -> bool:
    """Whether this process had to read from a disk in one of the last calls."""
    if resource is None or not hasattr(os, "pidfd_open"):
        return False
    blocks = resource.getrusage(resource.RUSAGE_SELF).ru_inblock
    _reading["calls"] = 0 if blocks != _reading["blocks"] else _reading["calls"] + 1
    _reading["blocks"] = blocks
    return _reading["calls"] < _CALLS


def _ranges(start: int, size: int, rows: NDArray[np.int64]) -> NDArray[np.uint64]:
    """(ranges, 2) address and bytes of runs of pages that hold the rows. size: bytes of a row"""
    at = start + rows * size
    first, last = at // _PAGE, (at + (size - 1)) // _PAGE
    new = np.flatnonzero(np.diff(last, prepend=-1))  # rows that follow each other share pages
    first, last = first[new], last[new]
    counts = last - first + 1
    within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    pages = np.unique(np.repeat(first, counts) + within)
    breaks = np.flatnonzero(np.diff(pages) > _GAP)
    begin = pages[np.concatenate([[0], breaks + 1])]
    end = pages[np.concatenate([breaks, [len(pages) - 1]])] + 1
    return np.stack([begin * _PAGE, (end - begin) * _PAGE], axis=1).astype(np.uint64)


def _expect(start: int, size: int, advice: int | None) -> None:
    """Tell the system in which order a table will be touched."""
    first = start // _PAGE * _PAGE
    if advice is not None:
        _library().madvise(
            ctypes.c_void_p(first), ctypes.c_size_t(start + size - first), ctypes.c_int(advice)
        )


def _advise(ranges: NDArray[np.uint64]) -> None:
    call, process = _system(os.getpid())
    for part in np.split(ranges, range(_RANGES, len(ranges), _RANGES)):
        if call is None or call(process, part.ctypes.data, len(part), _WILLNEED, 0) < 0:
            return  # an old system, or a page that is none any more


@cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None)


@cache
def _system(process: int) -> tuple[Any, int]:
    """process_madvise and a handle of the process, which is this one; None if there is none."""
    call = getattr(_library(), "process_madvise", None)
    if call is None:
        return None, -1
    call.argtypes = [
        ctypes.c_int,
        ctypes.c_void_p,
        ctypes.c_size_t,
        ctypes.c_int,
        ctypes.c_uint,
    ]
    call.restype = ctypes.c_ssize_t
    try:
        return call, os.pidfd_open(process)
    except OSError:
        return None, -1


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
