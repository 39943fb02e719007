"""Decides when checkpoints are written, and resumes a run from one."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, NoReturn

import torch

from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.files.writing import DiskFullError, remove_folder, remove_partial
from vrgcn.runs.checkpoint import (
    Checkpoint,
    DamagedCheckpointError,
    checkpoints_in,
    newest_checkpoint,
    save_checkpoint,
    step_of,
)
from vrgcn.runs.identity import differences, identity
from vrgcn.runs.interrupts import Interrupted, StopRequest
from vrgcn.runs.restoring import check_state
from vrgcn.training.clock import Interval
from vrgcn.training.divergence import DivergedError, diverged, spoilt
from vrgcn.training.listener import StopTraining
from vrgcn.training.result import TrainResult
from vrgcn.training.state import TrainState
from vrgcn.training.trainer import Trainer

KEPT = 2  # checkpoints to keep, so that one is left if the newest is damaged
ROLLBACKS = 3


class _ScoringStoppedError(Exception):
    """Raised when a signal arrives while the trained model is scored."""


class Checkpoints:
    """The checkpoints of one run.

    folder: where they lie; no other process may write there
    """

    def __init__(self, trainer: Trainer, folder: Path) -> None:
        self.trainer = trainer
        self.folder = folder
        self.every = Interval.parse(trainer.config.checkpoint_every)
        listener = trainer.listener
        self.on_note = listener.note if listener.hears_notes else _warn
        self._identity: dict[str, Any] | None = None
        self._kept: list[Path] = []  # undamaged, oldest first
        self._written: tuple[int, int] | None = None  # step and rollbacks of the newest
        self._last, self._cost = trainer.clock.now(), 0.0
        remove_partial(folder)

    @property
    def often(self) -> bool:
        """True if checkpoints are written while training runs, not only when it is stopped."""
        return self.every != Interval()

    def resume(self) -> bool:
        """Restore the trainer from the newest checkpoint; return False if there is none."""
        checkpoint = self._newest()
        if checkpoint is None:
            return False
        self._refuse_another(checkpoint)
        self._note_changes(checkpoint)
        self._restore(checkpoint)
        return True

    def run(self, stop: StopRequest) -> TrainResult:
        """Run the rest of the training and write a checkpoint whenever one is due."""
        self._begin()
        while True:
            try:
                if not self._advance(stop):
                    return self._finish(stop)
            except DivergedError as error:
                self._roll_back(error)

    def train_to(self, epochs: int, stop: StopRequest) -> None:
        """Run until so many epochs are done, or the training is over."""
        self._begin()
        while len(self.trainer.progress.curve) < epochs:
            try:
                if not self._advance(stop):
                    return
            except DivergedError as error:
                self._roll_back(error)

    def _begin(self) -> None:
        if self.trainer.config.on_nan == "rollback" and not self._kept:
            self.write()  # otherwise an early NaN loss has no checkpoint to go back to

    def _advance(self, stop: StopRequest) -> bool:
        """Make one step, and write a checkpoint if one is due; return False if no step is left."""
        trainer = self.trainer
        self._ask(stop)
        if not trainer.advance():
            if trainer.stopped in ("time", "callback"):
                self.write()  # a longer time limit, or a search, continues from here
            return False
        signal = self._asked(stop)
        if signal is not None:
            self._stop(signal)
        if not trainer.finished and self._due():
            self.write()
        return True

    def write(self) -> bool:
        """Write a checkpoint now; return False if the disk is full and training continues without
        it."""
        start = self.trainer.clock.now()
        self.trainer.listener.checkpoint()
        state = self.trainer.state(copied=False)
        what = self._spoilt(state)
        if what is not None:
            rate = self.trainer.optimizer.param_groups[0]["lr"]
            raise diverged(f"{what} became infinite or NaN", state.position, rate)
        if self._identity is None:
            self._identity = self._identify()
        try:
            if self._written != (state.position.step, state.progress.rollbacks):
                self._keep(self._save(state, self._identity))
                self._written = state.position.step, state.progress.rollbacks
        except DiskFullError as error:
            if self.trainer.config.on_full_disk == "stop":
                raise
            self.on_note(
                f"no checkpoint at step {state.position.step}: {error}; training continues"
            )
            return False
        finally:
            self._last = self.trainer.clock.now()
            self._cost = self._last - start
            self.trainer.progress.checkpoint_seconds += self._cost
        return True

    # Methods that are overridden when several processes share one checkpoint.

    def _newest(self) -> Checkpoint | None:
        return newest_checkpoint(self.folder, self.on_note)

    def _save(self, state: TrainState, identity: dict[str, Any]) -> Path:
        return save_checkpoint(self.folder, state, identity)

    def _identify(self) -> dict[str, Any]:
        return identity(self.trainer)

    def _spoilt(self, state: TrainState) -> str | None:
        return spoilt(state)

    def _finish(self, stop: StopRequest) -> TrainResult:
        """Return the result. A signal ends the scoring, which may take as long as an epoch."""

        def check() -> None:
            if stop.signal is not None:
                raise _ScoringStoppedError

        try:
            return self.trainer.finish(check)
        except _ScoringStoppedError:
            assert stop.signal is not None
            self._interrupt(stop.signal, "stopped while the trained model was scored")

    def _ask(self, stop: StopRequest) -> None:
        """Called before a step."""

    def _asked(self, stop: StopRequest) -> int | None:
        """Called after a step; return the signal that asks training to stop."""
        return stop.signal

    def _due(self) -> bool:
        if self.every.epochs is None:
            return self._time_has_come()
        done = len(self.trainer.progress.curve)
        return self._epoch_ended and (not self._kept or done % self.every.epochs == 0)

    @property
    def _epoch_ended(self) -> bool:
        batches = self.trainer.minibatches
        return batches.position.place == len(batches)

    def _time_has_come(self) -> bool:
        if self.every.seconds is None:
            return False
        if self._epoch_ended and not self._kept:  # the first epoch's work is never lost
            return True
        least = 0.0 if self.every.share is None else self._cost / self.every.share
        return self.trainer.clock.now() - self._last >= max(self.every.seconds, least)

    def _keep(self, path: Path) -> None:
        """Keep a written checkpoint and its predecessors. Checkpoints with a larger step belong to
        a course that was abandoned, and would be taken for the newest; they are removed."""
        self._kept = [*(kept for kept in self._kept if step_of(kept) < step_of(path)), path][-KEPT:]
        self._remove_others()

    def _remove_others(self) -> None:
        for other in checkpoints_in(self.folder):
            if other not in self._kept:
                remove_folder(other)

    def _stop(self, number: int) -> None:
        position, steps = self.trainer.minibatches.position, len(self.trainer.minibatches)
        at = f"stopped in epoch {position.epoch}, after step {position.place} of {steps}"
        self._interrupt(number, at)

    def _interrupt(self, number: int, at: str) -> NoReturn:
        """Write a checkpoint and raise `Interrupted`. at: where training stands"""
        if self.write():
            raise Interrupted(number, f"{at}; everything is kept in {self._kept[-1]}")
        raise Interrupted(number, f"{at}; what came after the last checkpoint is lost")

    def _restore(self, checkpoint: Checkpoint) -> None:
        try:
            check_state(self.trainer, checkpoint.state)
            self.trainer.restore(checkpoint.state)
        except (RuntimeError, ValueError, TypeError, AttributeError, LookupError) as error:
            raise DamagedCheckpointError(
                f"{checkpoint.path} does not fit this run: {error}"
            ) from None
        there = checkpoints_in(self.folder)[::-1]
        self._kept = [path for path in there if step_of(path) <= step_of(checkpoint.path)]
        self._written = checkpoint.state.position.step, checkpoint.state.progress.rollbacks
        self._last = self.trainer.clock.now()
        try:
            self.trainer.listener.restore(self.trainer.progress.curve)
        except StopTraining:
            self.trainer.stop()

    def _roll_back(self, error: DivergedError) -> None:
        """Continue from the last good checkpoint with half the learning rate."""
        trainer = self.trainer
        done = trainer.progress.rollbacks
        checkpoint = self._newest()
        if checkpoint is None:
            raise error
        if trainer.config.on_nan == "stop":
            raise DivergedError(
                str(error),
                f"the last good checkpoint, {checkpoint.path}, is unchanged: resuming from it with "
                f"{setting('on_nan', 'rollback')} halves the rate",
            ) from None
        if done >= ROLLBACKS:
            raise DivergedError(str(error), f"it was rolled back {done} times already") from None
        before = checkpoint.state.progress.rollbacks
        self._restore(checkpoint)
        trainer.progress.rollbacks = done + 1
        trainer.schedule.scale(0.5 ** (done + 1 - before))
        rate = trainer.optimizer.param_groups[0]["lr"]
        self.on_note(
            f"{error.what}; back to {checkpoint.path.name} with half the rate, {rate:g} "
            f"({done + 1} of at most {ROLLBACKS} times)"
        )

    def _refuse_another(self, checkpoint: Checkpoint) -> None:
        self._identity = self._identify()
        told = differences(checkpoint.identity, self._identity)
        if told:
            raise InputError(
                f"{checkpoint.path} belongs to another run and cannot be resumed as this one: "
                f"{'; '.join(told)}"
            )
        done, epochs = len(checkpoint.state.progress.curve), self.trainer.config.epochs
        if done > epochs:
            raise InputError(f"the run has {done} epochs already: epochs {epochs} is too few")

    def _note_changes(self, checkpoint: Checkpoint) -> None:
        threads = torch.get_num_threads()
        if checkpoint.threads != threads:
            self.on_note(
                f"the run had {checkpoint.threads} CPU threads and resumes with {threads}: sums "
                "are taken in another order, so its last bits may differ from an unbroken run's"
            )
        if checkpoint.torch != torch.__version__:
            self.on_note(f"the run was begun by PyTorch {checkpoint.torch}: last bits may differ")


def _warn(note: str) -> None:
    warnings.warn(note, stacklevel=2)
