"""Which pages of a file are in memory, and files of which none is."""

from __future__ import annotations

import ctypes
import mmap
import time
from pathlib import Path

import numpy as np
import pytest

from lab.harness.memory_limit import forget


def pages_in_memory(file: Path) -> list[int]:
    """Numbers of a file's pages that are in memory. Reading would bring others in: this looks."""
    table = np.memmap(file, np.uint8, mode="r")
    seen = (ctypes.c_ubyte * -(-table.nbytes // mmap.PAGESIZE))()
    mincore = ctypes.CDLL(None).mincore
    assert mincore(ctypes.c_void_p(table.ctypes.data), ctypes.c_size_t(table.nbytes), seen) == 0
    return [page for page, state in enumerate(seen) if state & 1]


def forgotten(file: Path) -> None:
    """Bring a file's pages out of memory; skip the test where the file system keeps them there."""
    for _ in range(100):
        forget(file.parent)
        if not pages_in_memory(file):
            return
        time.sleep(0.01)  # a page that another processor is just at work on stays that once
    pytest.skip("pages of this file system stay in memory")
