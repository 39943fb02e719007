"""Checks in several processes whether the parts of a graph are still those that training began
with.

Each process watches the files of its own part, and the shared files, as one process watches a graph
(runs/store_watch.py). A change that one of them finds stops all: no line of metrics, no model and
no checkpoint is written after it.
"""

from __future__ import annotations

from collections.abc import Callable

from vrgcn.distributed.group import Group
from vrgcn.distributed.parts import opened_part
from vrgcn.files.folder import OpenFolder
from vrgcn.runs.store_watch import StoreChangedError, StoreWatch
from vrgcn.training.listener import Listener
from vrgcn.training.state import Epoch


class PartWatch(Listener):
    """Watches the part of this process. All processes have one, and get the same epochs and
    checkpoints.

    whole: the folder of all parts, from which the part is read
    tell: prints a note; only the first process that finds something calls it
    """

    def __init__(self, whole: OpenFolder, group: Group, tell: Callable[[str], None]) -> None:
        self.group = group
        self.tell = tell
        with opened_part(whole, group.rank) as mine:
            self._watches = [StoreWatch(folder, self._gone) for folder in (whole, mine)]

    def step(self, done: int, total: int) -> None:
        for watch in self._watches:
            watch.glance()  # an error ends this process, and the others lose it

    def epoch(self, point: Epoch) -> None:
        self.checkpoint()

    def checkpoint(self) -> None:
        """Raise in all processes if files that one of them reads have changed."""
        mine: str | None = None
        try:
            for watch in self._watches:
                watch.check()
        except StoreChangedError as error:
            mine = str(error)
        for change in self.group.everybody(mine):
            if change is not None:
                raise StoreChangedError(change)

    def _gone(self, note: str) -> None:
        if self.group.tells("gone"):
            self.tell(note)
