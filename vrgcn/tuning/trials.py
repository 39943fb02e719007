"""The trials of a search: a training each, in several parts if it is behind and resumed later."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from torch import nn

from vrgcn.costs.choice import choose_estimator
from vrgcn.files.memory import free_memory, is_out_of_memory
from vrgcn.files.mistakes import InputError
from vrgcn.files.settings import AUTO
from vrgcn.files.wording import bytes_text, seconds_text
from vrgcn.runs.building import build_network
from vrgcn.runs.checkpoint import seconds_used
from vrgcn.runs.folder import CHECKPOINTS, CONFIG
from vrgcn.runs.interrupts import Interrupted, stop_requests
from vrgcn.runs.job import Job, prepare
from vrgcn.targets.opening import find_target
from vrgcn.training.clock import Clock
from vrgcn.training.listener import Listener, StopTraining
from vrgcn.training.result import TrainResult
from vrgcn.training.state import Epoch
from vrgcn.tuning.halving import Course
from vrgcn.tuning.members import VALIDATION, Member
from vrgcn.tuning.session import Session
from vrgcn.tuning.space import TriedSettings
from vrgcn.tuning.study import (
    COST,
    PARTS,
    PASSED,
    TRAINED,
    State,
    Tried,
    end_trial,
    noted,
    tried,
)
from vrgcn.tuning.turns import CUT, drop_checkpoints, next_turn, share_of

if TYPE_CHECKING:
    import optuna

_OVER = "the time was over"
_THERE = ("edges", "features")  # parts of the graph, which is in memory already


def run_trials(session: Session, trials: int | None) -> None:
    """Train trials in turn until the number of them or the time limit is reached."""

    def settle(settings: TriedSettings) -> TriedSettings:
        return settled(session, settings)

    with stop_requests() as stop:
        drop_checkpoints(session)
        while (trial := next_turn(session, trials, settle)) is not None:
            ended = _try(session, trial)
            end_trial(session.study, trial, ended)
            drop_checkpoints(session)
            session.note(ended)
            if stop.signal is not None:  # it came after the trial was done
                raise Interrupted(stop.signal, f"stopped after trial {ended.number}")


def settled(session: Session, settings: TriedSettings) -> TriedSettings:
    """Return the settings with the estimator that `auto` stands for in just these settings: a
    search compares actual estimators."""
    if settings.train.estimator != AUTO:
        return settings
    train, _ = choose_estimator(_build(session, settings), session.graph, settings.train)
    return replace(settings, train=train)


def _build(session: Session, settings: TriedSettings) -> nn.Module:
    return build_network(settings.model, session.graph, session.target, settings.train.seed)


def _try(session: Session, trial: optuna.Trial) -> Tried:
    """Train as a trial says, from where it stopped; errors of the trial itself are recorded, not
    raised."""
    clock, training = Clock(), _Training(session, trial)
    session.leaderboard.doing(f"trial {trial.number}: preparing")
    before = tried(session.study)[trial.number].seconds
    state: State
    try:
        state, reason, val = training.run(session.settings_of(trial))
    except (MemoryError, FloatingPointError, InputError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and not is_out_of_memory(error):
            raise
        state, val = "failed", training.best
        reason = (str(error).splitlines() or [type(error).__name__])[0]
    epochs, values = len(training.curve), dict(trial.params)
    seconds, predicting = before + clock.used, training.predicting_seconds
    return Tried(
        trial.number, state, val, values, epochs, seconds, reason, predicting_seconds=predicting
    )


class _Training(Listener):
    """A part of the training of one trial, which listens to it and pauses it when it is behind.

    curve: its epochs so far; reported: the best score so far by epoch
    """

    hears_notes = True

    def __init__(self, session: Session, trial: optuna.Trial) -> None:
        self.session = session
        self.trial = trial
        self.number = trial.number
        self.curve: list[Epoch] = []
        known = session.courses()
        self.others = [course for course in known if course.number != self.number]
        self.own = next(course for course in known if course.number == self.number)
        self.reported = dict(self.own.curve)
        self.passed = session.study.get_trials(deepcopy=False)[self.number].user_attrs.get(
            PASSED, 0
        )
        self.predicting_seconds = 0.0

    def run(self, settings: TriedSettings) -> tuple[State, str | None, float | None]:
        """Return how it ended, why, and the score of the kept model."""
        session, number = self.session, self.number
        settings = settled(session, settings)
        target = find_target(session.untested, settings.train)
        target.tested = False
        job = prepare(_build(session, settings), session.untested, settings.train, target)
        cost = _cost(job)
        self.trial.set_user_attr(COST, cost)
        self.own = next(course for course in session.courses() if course.number == number)
        self.epochs = settings.train.epochs
        beside = session.predicted(0.0, 0)  # what a part of a trial takes beside its steps
        left, share = session.left - beside, share_of(session)
        if not self.own.curve:
            # A trial that is not judged says little.
            takes = session.predicted(cost, math.ceil(session.halving.first / self.own.cost))
            if takes > left + beside:
                there = f"and {seconds_text(max(left + beside, 0.0))} are left"
                return "paused", f"to be judged takes about {seconds_text(takes)}, {there}", None
        folder = session.trial_folder(number)
        limit = seconds_used(folder / CHECKPOINTS) + max(0.001, min(left, share))
        time_limit = None if math.isinf(limit) else f"{limit:.3f}s"
        config = replace(settings.train, diagnostics=0, time_limit=time_limit)
        options = {**session.options, **settings.values(), "time_limit": None}
        resume = (folder / CONFIG).is_file()
        (folder / VALIDATION).unlink(missing_ok=True)  # of the model before
        result = replace(job, config=config).run(folder, options, self, resume=resume)
        self._note(result)
        if result.stopped == "callback":  # and not at its end anyway
            return "paused", None, self.best
        if result.stopped != "time":
            return "complete", None, result.val
        return "paused", CUT if share < left else _OVER, result.val

    def _note(self, result: TrainResult) -> None:
        """Note what this part has cost, and what it takes to predict the validation nodes, whose
        outputs an average needs."""
        session = self.session
        self.trial.set_user_attr(TRAINED, result.seconds + result.evaluation_seconds)
        parts = noted(session.study, self.number).get(PARTS, 0)
        self.trial.set_user_attr(PARTS, parts + 1)
        scored = [point for point in result.curve if point.val is not None]
        self.predicting_seconds = result.evaluation_seconds / max(len(scored), 1)
        if session.averages:
            clock = Clock()
            member = Member(tried(session.study)[self.number], session.trial_folder(self.number))
            member.validation_outputs(session.untested)
            self.predicting_seconds = clock.used

    @property
    def best(self) -> float | None:
        """The best score so far, for which a model is kept."""
        better, best = self.session.target.better, None
        for val in (point.val for point in self.curve if point.val is not None):
            best = val if best is None or better(val, best) else best
        return best

    def epoch(self, point: Epoch) -> None:
        self.curve.append(point)
        self.session.leaderboard.epoch(self.number, point.epoch, self.epochs, point.val)
        best = self.best
        if point.val is None or best is None:
            return
        if point.epoch not in self.reported:  # before a kill or a rollback
            self.trial.report(best, point.epoch)
            self.reported[point.epoch] = best
        self._judge(point.epoch)

    def restore(self, curve: list[Epoch]) -> None:
        self.curve[:] = curve  # later epochs, before a rollback, have no model any more
        self._judge(len(curve))  # a signal may have stopped it after the step that it is paused at

    def note(self, text: str) -> None:
        self.session.on_note(text)

    def _judge(self, epoch: int) -> None:
        """Pause at a rung; the trial of the given settings is trained to its end in any case."""
        halving = self.session.halving
        known = {number: score for number, score in self.reported.items() if number <= epoch}
        own: Course = replace(self.own, curve=known)
        rungs = halving.rungs(own)
        if not self.number or rungs <= self.passed or halving.continues(own, self.others):
            return
        raise StopTraining


def _cost(job: Job) -> float:
    """Return the counted cost of an epoch. Raise if a trial does not fit: if memory runs out, a
    process may be killed silently."""
    name = job.config.estimator
    costs = job.costs([name])
    if name not in costs:
        return 1.0  # it cannot be trained, and training says why
    needed = sum(size for part, size in costs[name].memory.items() if part not in _THERE)
    free = free_memory()
    if needed > free:
        raise MemoryError(
            f"it would take {bytes_text(needed)} of memory, and {bytes_text(free)} are free"
        )
    return costs[name].work
