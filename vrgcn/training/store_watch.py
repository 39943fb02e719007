"""Whether a graph on disk is still the one that training began with.

Its arrays are mapped into memory, so a file that is written to while a run reads it changes the
run. One that is removed, or replaced by another of its name, is still there for the run.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple


class StoreChangedError(OSError):
    """A file of the graph was written to while training read it."""


class Stamp(NamedTuple):
    inode: int
    size: int
    modified: int


class StoreWatch:
    """folder: of the graph, as training begins
    on_note: told, once, that the graph is gone or another has its name
    """

    def __init__(self, folder: Path, on_note: Callable[[str], None]) -> None:
        self.folder = folder.resolve()
        self.on_note = on_note
        self._stamps = {
            file.name: _stamp(file)
            for file in sorted(self.folder.iterdir())
            if file.is_file()  # what is derived from it comes and goes
        }
        self._told = False

    def check(self) -> None:
        """Refuse to go on where what training reads has changed."""
        for name, before in self._stamps.items():
            file = self.folder / name
            try:
                now = _stamp(file)
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


def _stamp(file: Path) -> Stamp:
    stat = file.stat()
    return Stamp(stat.st_ino, stat.st_size, stat.st_mtime_ns)


def _changed(file: Path) -> str:
    return (
        f"{file} was changed while training read it: what came since the last checkpoint cannot be "
        "trusted. Put the graph back as it was and go on with --resume"
    )
