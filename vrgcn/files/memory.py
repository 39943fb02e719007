"""Allocations that failed, told from other errors, and what would take less memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

# What allocators say, of the CPU, of NumPy, of Arrow, of CUDA and of the loader of libraries:
# PyTorch raises a plain RuntimeError, and others wrap what they were told.
_SAID = (
    "can't allocate memory",
    "not enough memory",
    "out of memory",
    "Cannot allocate memory",
    "Unable to allocate",
    "alloc of size",
    "failed to map segment",
    "can't start new thread",
    "Failed to launch worker thread",
)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an allocation failed, by type or by what was said."""
    return isinstance(error, MemoryError) or any(said in str(error) for said in _SAID)


@contextmanager
def memory_advice(advice: str) -> Iterator[None]:
    """Turns an allocation that failed into an error with this text."""
    try:
        yield
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        said = str(error).splitlines()[0] if str(error) else "an allocation failed"
        raise MemoryError(f"{advice}\n({said})") from error
