"""How much memory there is; allocations that failed, told from other errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

UNLIMITED = 2**63 - 1  # bytes, where nothing limits them

# Messages of the allocators of the CPU, NumPy, Arrow, CUDA and the library loader: PyTorch raises a
# plain RuntimeError, and others wrap such messages.
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

# Folders of control groups that limit memory, by the controllers that /proc/self/cgroup names, and
# the file with the limit: version 2, version 2 beside version 1, version 1.
_GROUPS = (
    ("", Path("/sys/fs/cgroup"), "memory.max"),
    ("", Path("/sys/fs/cgroup/unified"), "memory.max"),
    ("memory", Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"),
)


def free_memory() -> int:
    """Bytes that the process may still take: of the machine, and within limits that it was set.

    UNLIMITED where nothing tells.
    """
    known = [UNLIMITED]
    with suppress(OSError, ValueError, IndexError):
        line = next(x for x in _lines("/proc/meminfo") if x.startswith("MemAvailable:"))
        known.append(1024 * int(line.split()[1]))
    own = taken_memory("RssAnon")
    known += [max(0, limit - own) for limit in _group_limits()]
    if resource is not None:
        known.append(_within(resource.RLIMIT_DATA, "VmData"))
    return min(*known, free_addresses())


def free_addresses() -> int:
    """Bytes that the process may still map, files among them, within a limit that it was set
    (`ulimit -v`); UNLIMITED where there is none."""
    return UNLIMITED if resource is None else _within(resource.RLIMIT_AS, "VmSize")


def _within(kind: int, taken: str) -> int:
    limit = resource.getrlimit(kind)[0]
    return UNLIMITED if limit == resource.RLIM_INFINITY else max(0, limit - taken_memory(taken))


def _group_limits() -> Iterator[int]:
    """Memory limits of the control groups that the process is in, and of those around them: a
    job's, a service's, a container's, which seems to be the outermost from inside."""
    lines: list[str] = []
    with suppress(OSError):
        lines = _lines("/proc/self/cgroup")  # lines like 4:memory:/jobs/17 or 0::/jobs/17
    for controller, root, file in _GROUPS:
        groups = {root}
        for _, controllers, path in (line.split(":", 2) for line in lines):
            if controller in controllers.split(","):
                own = root / path.lstrip("/")
                groups |= {own, *(above for above in own.parents if above.is_relative_to(root))}
        for group in groups:
            with suppress(OSError, ValueError):  # "max" where there is none
                yield int(_lines(str(group / file))[0])


def taken_memory(kind: str = "VmSize", process: int | str = "self") -> int:
    """Bytes that a process has, of a kind of its /proc/…/status; 0 where nothing tells."""
    with suppress(OSError, ValueError, StopIteration):
        line = next(x for x in _lines(f"/proc/{process}/status") if x.startswith(f"{kind}:"))
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
