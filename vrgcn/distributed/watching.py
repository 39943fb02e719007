"""Whether the parts of a graph are still those that training began with, in several processes.

Each process watches the files of its own part, and those that all share, as one process watches a
graph (runs/store_watch.py). A change that one of them finds stops all: no line of metrics, no model
and no checkpoint is written after it.
"""

from __future__ import annotations

import signal
from collections.abc import Callable

from vrgcn.distributed.group import Group
from vrgcn.distributed.parts import opened_part
from vrgcn.files.folder import OpenFolder
from vrgcn.runs.store_watch import StoreChangedError, StoreWatch, wanted_note
from vrgcn.training.listener import Listener
from vrgcn.training.state import Epoch


class PartWatch(Listener):
    """Watches the part of this process. All processes have one, and hear the same epochs and
    checkpoints.

    whole: the folder of all parts, as the part is read from it
    tell: prints a note; of all processes, the first that finds something tells
    """

    def __init__(self, whole: OpenFolder, group: Group, tell: Callable[[str], None]) -> None:
        self.group = group
        self.tell = tell
        with opened_part(whole, group.rank) as mine:
            self._watches = [StoreWatch(folder, self._gone) for folder in (whole, mine)]

    def close(self) -> None:
        """Hold nobody back any more."""
        for watch in self._watches:
            watch.close()

    def step(self, done: int, total: int) -> None:
        for watch in self._watches:
            watch.glance()  # an error ends this process, and the others lose it
            file = watch.wanted()
            if file is not None:
                if self.group.tells("wanted"):
                    self.tell(wanted_note(file))
                signal.raise_signal(signal.SIGTERM)  # all stop, as by a signal from outside

    def epoch(self, point: Epoch) -> None:
        self.checkpoint()

    def checkpoint(self) -> None:
        """Refuse to go on, in all processes, where what one of them reads has changed."""
        mine: str | None = None
        try:
            for watch in self._watches:
                watch.check()
        except StoreChangedError as error:
            mine = str(error)
        for found in self.group.everybody(mine):
            if found is not None:
                raise StoreChangedError(found)

    def _gone(self, note: str) -> None:
        if self.group.tells("gone"):
            self.tell(note)
