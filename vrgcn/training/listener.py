"""Listeners: objects that are called with the events of a run while it trains."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # importing tables shows progress and needs no torch
    from vrgcn.engine.batch import Batch
    from vrgcn.training.state import Epoch


class StopTraining(Exception):  # noqa: N818 - no error, as StopIteration
    """Raised by a listener's `epoch` or `restore` to end training as if this epoch had been the
    last. The epoch is then evaluated, even if `evaluate_every` had skipped it."""


class Listener:
    """Ignores all events; a subclass overrides the methods for the events it needs.

    hears_notes: True if notes reach the user; otherwise some of them become warnings
    """

    hears_notes = False

    def epoch(self, point: Epoch) -> None:
        """Called at the end of an epoch with its point of the curve. May raise StopTraining."""

    def kept(self, point: Epoch) -> None:
        """Called at the end of an epoch whose weights would be kept if training ended now; the
        model has these weights."""

    def step(self, done: int, total: int) -> None:
        """Called at the end of a step: `done` of the epoch's `total`."""

    def batch(self, batch: Batch) -> None:
        """Called before the step on this minibatch."""

    def checkpoint(self) -> None:
        """Called before a checkpoint is written; an error stops the run and keeps the last
        checkpoint."""

    def restore(self, curve: list[Epoch]) -> None:
        """Called after the run was restored from a checkpoint, with its curve so far. May raise
        StopTraining."""

    def note(self, text: str) -> None:
        """Called with a message for the user that is no error."""


class Listeners(Listener):
    """Several listeners as one, called in order. If one raises StopTraining, all are called before
    training ends."""

    def __init__(self, *listeners: Listener) -> None:
        self.listeners = listeners
        self.hears_notes = any(listener.hears_notes for listener in listeners)

    def epoch(self, point: Epoch) -> None:
        self._tell(lambda listener: listener.epoch(point))

    def kept(self, point: Epoch) -> None:
        self._tell(lambda listener: listener.kept(point))

    def step(self, done: int, total: int) -> None:
        self._tell(lambda listener: listener.step(done, total))

    def batch(self, batch: Batch) -> None:
        self._tell(lambda listener: listener.batch(batch))

    def checkpoint(self) -> None:
        self._tell(lambda listener: listener.checkpoint())

    def restore(self, curve: list[Epoch]) -> None:
        self._tell(lambda listener: listener.restore(curve))

    def note(self, text: str) -> None:
        self._tell(lambda listener: listener.note(text))

    def _tell(self, tell: Callable[[Listener], None]) -> None:
        stop: StopTraining | None = None
        for listener in self.listeners:
            try:
                tell(listener)
            except StopTraining as wish:
                stop = wish
        if stop is not None:
            raise stop


@dataclass(frozen=True)
class Callbacks(Listener):
    """A listener made of functions; functions that are None are not called.

    on_epoch: called with each point of the curve; it may raise StopTraining
    on_kept: called with the point of an epoch whose weights would be kept if training ended now;
        the model has these weights
    on_step: called with (steps done, steps in the epoch)
    on_batch: called with each minibatch before its step
    on_checkpoint: called before each checkpoint; an error stops the run and keeps the last
        checkpoint
    on_restore: called with the curve so far after the run was restored from a checkpoint; it may
        raise StopTraining
    on_note: called with messages for the user that are no errors; None: they become warnings
    """

    on_epoch: Callable[[Epoch], None] | None = None
    on_kept: Callable[[Epoch], None] | None = None
    on_step: Callable[[int, int], None] | None = None
    on_batch: Callable[[Batch], None] | None = None
    on_checkpoint: Callable[[], None] | None = None
    on_restore: Callable[[list[Epoch]], None] | None = None
    on_note: Callable[[str], None] | None = None

    @property
    def hears_notes(self) -> bool:  # type: ignore[override]
        return self.on_note is not None

    def epoch(self, point: Epoch) -> None:
        if self.on_epoch is not None:
            self.on_epoch(point)

    def kept(self, point: Epoch) -> None:
        if self.on_kept is not None:
            self.on_kept(point)

    def step(self, done: int, total: int) -> None:
        if self.on_step is not None:
            self.on_step(done, total)

    def batch(self, batch: Batch) -> None:
        if self.on_batch is not None:
            self.on_batch(batch)

    def checkpoint(self) -> None:
        if self.on_checkpoint is not None:
            self.on_checkpoint()

    def restore(self, curve: list[Epoch]) -> None:
        if self.on_restore is not None:
            self.on_restore(curve)

    def note(self, text: str) -> None:
        if self.on_note is not None:
            self.on_note(text)
