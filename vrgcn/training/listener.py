"""Listeners: objects that a run tells what happens while it trains."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # an import of tables shows progress, and needs no torch
    from vrgcn.engine.batch import Batch
    from vrgcn.training.state import Epoch


class StopTraining(Exception):  # noqa: N818 - no error, as StopIteration
    """Raised by a listener's `epoch` or `restore`: training ends here, as if this epoch had been
    the last. It is evaluated afterwards, if `evaluate_every` had left it out."""


class Listener:
    """Ignores everything; a listener of one's own overrides what it wants to hear.

    hears_notes: whether notes reach people; where nobody hears them, some become warnings
    """

    hears_notes = False

    def epoch(self, point: Epoch) -> None:
        """An epoch has ended, this is its point of the curve. May raise StopTraining."""

    def kept(self, point: Epoch) -> None:
        """An epoch has ended whose weights, which the model has, would be kept if training ended
        now."""

    def step(self, done: int, total: int) -> None:
        """A step has ended: `done` of the epoch's `total`."""

    def batch(self, batch: Batch) -> None:
        """A step begins on this minibatch."""

    def checkpoint(self) -> None:
        """A checkpoint is about to be written; an error stops the run with the last one kept."""

    def restore(self, curve: list[Epoch]) -> None:
        """The run was put to where a checkpoint is, this is its curve so far. May raise
        StopTraining."""

    def note(self, text: str) -> None:
        """People should know this; it is no error."""


class Listeners(Listener):
    """Several listeners as one, told in order. Where one raises StopTraining, all are told before
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
    """A listener made of functions; those that are None are not called.

    on_epoch: each point of the curve; it may raise StopTraining
    on_kept: the point of an epoch whose weights would be kept if training ended now; the model has
        them
    on_step: (steps done, steps in the epoch)
    on_batch: each minibatch before its step
    on_checkpoint: before each checkpoint; an error of it stops the run with the last one kept
    on_restore: the curve so far, after the run was put to where a checkpoint is; it may raise
        StopTraining
    on_note: what people must know and what is no error; None: a warning
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
