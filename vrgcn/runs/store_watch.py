"""Checks whether a graph on disk is still the one that training began with.

Its arrays are mapped into memory, so writing to a file while a run reads it changes the run, and
truncating a file ends the process with a bus error. Linux can hold back a process that opens a file
for writing (a lease: see fcntl(2)), long enough to finish a step and write a checkpoint. If leases
are not available, as on network disks, files are checked every second. A file that is removed, or
replaced by another of its name, stays readable for the run.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from io import BufferedReader
from pathlib import Path
from typing import NamedTuple

from vrgcn.files.folder import OpenFolder, opened_folder
from vrgcn.files.setting_names import setting

try:
    import fcntl
except ImportError:  # pragma: no cover - then nobody is held back
    fcntl = None  # type: ignore[assignment]

SECONDS = 1.0  # between two checks of the files of a graph
MAPPED = (".npy", ".arrow", ".safetensors")


class StoreChangedError(OSError):
    """Raised when a file of the graph was written to while training read it."""


class Stamp(NamedTuple):
    inode: int
    size: int
    modified: int


class StoreWatch:
    """Watches the files of a graph during training.

    folder: of the graph, as training begins; already open if the graph is read from it
    on_note: called once if the graph is gone or another one has its name
    now: returns the time in seconds
    """

    def __init__(
        self,
        folder: Path | OpenFolder,
        on_note: Callable[[str], None],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.on_note = on_note
        self._told = self._asked = False
        self._now = now
        self._looked = now()
        self._stamps: dict[str, Stamp] = {}
        self._leases: dict[int, Path] = {}  # by the descriptor of each lease
        with opened_folder(folder) as opened:
            self.folder = opened.path.resolve()
            # Files derived from the graph are in a folder of their own and may change.
            for name in opened.files():
                self._stamps[name] = _stamp(opened.stat(name))
                if name.endswith(MAPPED):
                    with opened.open(name) as file:
                        lease = _lease(file)
                    if lease is not None:
                        self._leases[lease] = self.folder / name

    def close(self) -> None:
        """Release all leases."""
        while self._leases:
            os.close(self._leases.popitem()[0])

    def wanted(self) -> Path | None:
        """Return a file that another process waits to write to, once; None if there is none. The
        other process waits until `close`, or as long as the system allows (45 seconds)."""
        for descriptor, file in self._leases.items():
            if fcntl.fcntl(descriptor, fcntl.F_GETLEASE) != fcntl.F_RDLCK and not self._asked:
                self._asked = True
                return file
        return None

    def glance(self) -> None:
        """Call `check`, unless it ran within the last second."""
        if self._now() - self._looked >= SECONDS:
            self.check()

    def check(self) -> None:
        """Raise if the files that training reads have changed."""
        self._looked = self._now()
        for name, before in self._stamps.items():
            file = self.folder / name
            try:
                now = _stamp(file.stat())
            except FileNotFoundError:
                self._tell(f"{file} has disappeared")
                continue
            if now.inode != before.inode:
                self._tell(f"{file} was replaced by another")
            elif now != before:
                raise StoreChangedError(_changed(file))

    def _tell(self, what: str) -> None:
        if not self._told:
            self._told = True
            self.on_note(
                f"{what} since training began. This process has the old one open and goes on with "
                "it, but the run cannot be resumed or predicted without it"
            )


def wanted_note(file: Path) -> str:
    """Return a note on a file that another process waits to write to."""
    return (
        f"another process wants to write to {file}, which training reads: the run stops. With the "
        "graph as it was it goes on"
    )


def _lease(file: BufferedReader) -> int | None:
    """Take a lease on an open file and return its descriptor; None if the system grants none: the
    file belongs to another user or lies on another machine, a process is writing to it, or the
    system has no leases."""
    if fcntl is None or not hasattr(fcntl, "F_SETLEASE"):
        return None
    descriptor = os.dup(file.fileno())
    try:
        # The signal of a lease ends a process unless it is one that is ignored by default.
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _stamp(found: os.stat_result) -> Stamp:
    return Stamp(found.st_ino, found.st_size, found.st_mtime_ns)


def _changed(file: Path) -> str:
    return (
        f"{file} was changed while training read it: what came since the last checkpoint cannot be "
        f"trusted. Put the graph back as it was and go on with {setting('resume')}"
    )
