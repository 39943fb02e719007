"""Checks whether a graph on disk is still the one that training began with.

Its arrays are mapped into memory, so writing to a file while a run reads it changes the run. Sizes
and times of the files are checked every second, before a checkpoint and at the end of an epoch. A
file that is removed, or replaced by another of its name, stays readable for the run.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from vrgcn.files.folder import OpenFolder, opened_folder
from vrgcn.files.setting_names import setting

SECONDS = 1.0  # between two checks of the files of a graph


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
        self._told = False
        self._now = now
        self._looked = now()
        self._stamps: dict[str, Stamp] = {}
        with opened_folder(folder) as opened:
            self.folder = opened.path.resolve()
            # Files derived from the graph are in a folder of their own and may change.
            for name in opened.files():
                self._stamps[name] = _stamp(opened.stat(name))

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


def _stamp(found: os.stat_result) -> Stamp:
    return Stamp(found.st_ino, found.st_size, found.st_mtime_ns)


def _changed(file: Path) -> str:
    return (
        f"{file} was changed while training read it: what came since the last checkpoint cannot be "
        f"trusted. Restore the graph and continue with {setting('resume')}"
    )
