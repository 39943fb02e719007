"""How much memory there is; allocations that failed, told from other errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

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

# Of a container or a job, new and old.
_GROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def free_memory() -> int:
    """Bytes that the process may still take: of the machine, and within limits that it was set.

    2^63 − 1 where nothing tells.
    """
    known = [2**63 - 1]
    with suppress(OSError, ValueError, IndexError):
        line = next(x for x in _lines("/proc/meminfo") if x.startswith("MemAvailable:"))
        known.append(1024 * int(line.split()[1]))
    for file in _GROUP_LIMITS:
        with suppress(OSError, ValueError):  # "max" where there is none
            known.append(int(_lines(file)[0]))
    if resource is not None:
        known.append(_within(resource.RLIMIT_DATA, "VmData"))
    return min(*known, free_addresses())


def free_addresses() -> int:
    """Bytes that the process may still map, files among them, within a limit that it was set
    (`ulimit -v`); 2^63 − 1 where there is none."""
    return 2**63 - 1 if resource is None else _within(resource.RLIMIT_AS, "VmSize")


def _within(kind: int, taken: str) -> int:
    limit = resource.getrlimit(kind)[0]
    return 2**63 - 1 if limit == resource.RLIM_INFINITY else max(0, limit - taken_memory(taken))


def taken_memory(kind: str = "VmSize") -> int:
    """Bytes that the process has, of a kind of /proc/self/status; 0 where nothing tells."""
    with suppress(OSError, ValueError, StopIteration):
        line = next(x for x in _lines("/proc/self/status") if x.startswith(f"{kind}:"))
        return 1024 * int(line.split()[1])
    return 0


def _lines(file: str) -> list[str]:
    return Path(file).read_text().splitlines()


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
