"""A hard limit on the memory of a command: a control group of Linux, where one can be made.

A group counts everything that its processes bring into memory, pages of files included: with files
larger than the limit, pages have to go before others come. Making one takes root, or a group that
was handed over. Elsewhere the limit is RLIMIT_DATA, of the process's own memory alone.

Pages belong to the group that read them first. Those that are in memory already when a process of
the group comes to them cost it nothing, so `forget` them before.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from vrgcn.files.memory import taken_memory

GROUPS = Path("/sys/fs/cgroup")


class MemoryLimit(Protocol):
    """A limit of memory.

    kind: the mechanism; counts: a description of what it counts
    prefix: words to put before a command to limit it
    """

    kind: str
    counts: str
    prefix: list[str]

    def numbers(self) -> dict[str, int]:
        """Return bytes, and how often the limit was reached, as far as known."""


@dataclass(frozen=True)
class _Files:
    """Names of a group's files, and of the lines of its memory.stat, in one version of control
    groups."""

    kind: str
    limit: str
    peak: str
    met: str
    own: str
    cached: str


_V1 = _Files(
    "a control group (version 1)",
    "memory.limit_in_bytes",
    "memory.max_usage_in_bytes",
    "memory.failcnt",
    "total_rss",
    "total_cache",
)
_V2 = _Files(
    "a control group (version 2)", "memory.max", "memory.peak", "memory.events", "anon", "file"
)


class GroupLimit:
    """A limit by a control group. folder: of the group"""

    counts = "all memory of the process and every page of a file that it reads or writes"

    def __init__(self, folder: Path, files: _Files) -> None:
        self.folder, self.files, self.kind = folder, files, files.kind
        self.prefix = _shell('echo $$ > "$0"', str(folder / "cgroup.procs"))

    def numbers(self) -> dict[str, int]:
        told = {}
        with suppress(OSError, ValueError):  # older kernels of version 2 keep no peak
            told["peak"] = int((self.folder / self.files.peak).read_text())
        met = (self.folder / self.files.met).read_text()
        told["limit_met"] = int(_lines(met)["max"] if "max" in met else met)
        stat = _lines((self.folder / "memory.stat").read_text())
        return told | {"own": int(stat[self.files.own]), "cached": int(stat[self.files.cached])}


class DataLimit:
    kind = "RLIMIT_DATA"
    counts = (
        "heap, stacks and private mappings that can be written to. Pages of files are NOT counted: "
        "they stay in whatever memory the machine has left (no control group could be made)"
    )

    def __init__(self, limit: int) -> None:
        self.prefix = _shell('ulimit -d "$0"', str(limit // 1024))

    def numbers(self) -> dict[str, int]:
        return {}


def _shell(first: str, argument: str) -> list[str]:
    """Return a shell that applies an action with an argument to itself, and then becomes the
    command."""
    return ["sh", "-c", f'{first} && exec "$@"', argument]


@contextmanager
def memory_limit(limit: int, groups: Path = GROUPS) -> Iterator[MemoryLimit]:
    """Yield the strictest limit available here; a group is removed afterwards. limit: bytes"""
    for parent, files in ((groups / "memory", _V1), (groups, _V2)):
        folder = parent / f"vrgcn-{os.getpid()}"
        if (parent / "cgroup.procs").is_file() and _made(folder, files, limit):
            try:
                yield GroupLimit(folder, files)
            finally:
                _remove(folder)
            return
    yield DataLimit(limit)


def _made(folder: Path, files: _Files, limit: int) -> bool:
    """Return True if a group that limits memory could be created."""
    try:
        folder.mkdir()
    except OSError:
        return False
    try:
        # Opening must not create it: a group that does not limit memory has no such file.
        with open(folder / files.limit, "r+", encoding="ascii") as file:
            file.write(str(limit))
    except OSError:
        _remove(folder)
        return False
    return True


def _remove(folder: Path) -> None:
    # Remaining pages then belong to the parent group; version 2 has no such file.
    with suppress(OSError), open(folder / "memory.force_empty", "r+", encoding="ascii") as file:
        file.write("0")
    for _ in range(50):  # the last process may still be leaving
        with suppress(OSError):
            folder.rmdir()
            return
        time.sleep(0.1)


@dataclass
class Ended:
    """The end of a limited command.

    code: of the exit
    most: the largest observed value of each number of the limit, and of the command's own memory
    """

    code: int = 0
    seconds: float = 0.0
    most: dict[str, int] = field(default_factory=dict)


def run_limited(
    command: Sequence[str],
    limit: MemoryLimit | None,
    *,
    every: float = 0.5,
    **popen: Any,
) -> Ended:
    """Run a command to its end, and sample its memory at this interval in seconds."""
    ended, start = Ended(), time.perf_counter()
    prefix = [] if limit is None else limit.prefix
    with subprocess.Popen([*prefix, *command], **popen) as process:
        while True:
            seen = {"own": taken_memory("RssAnon", process.pid)}
            for name, value in (seen if limit is None else seen | limit.numbers()).items():
                ended.most[name] = max(value, ended.most.get(name, 0))
            with suppress(subprocess.TimeoutExpired):
                ended.code = process.wait(every)
                break
    ended.seconds = time.perf_counter() - start
    return ended


def forget(*folders: Path) -> None:
    """Make the system write and drop the pages of all files in some folders, so that the next
    reader has to get them from the disk. A page that a process has mapped stays."""
    for file in (file for folder in folders for file in folder.rglob("*") if file.is_file()):
        descriptor = os.open(file, os.O_RDONLY)
        try:
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def _lines(text: str) -> dict[str, str]:
    """Return the numbers of a file with a name and a number on each line."""
    return dict(line.split() for line in text.splitlines())
