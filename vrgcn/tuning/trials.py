"""The trials of a search: one training each, in its share of the time, pruned if it is behind."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from torch import nn

from vrgcn.costs.choice import choose_estimator
from vrgcn.files.memory import free_memory, is_out_of_memory
from vrgcn.files.mistakes import InputError
from vrgcn.files.settings import AUTO
from vrgcn.files.wording import bytes_text, seconds_text
from vrgcn.files.writing import remove_folder
from vrgcn.inference import MODEL
from vrgcn.runs.auto_settings import few_labels
from vrgcn.runs.building import build_network
from vrgcn.runs.folder import BASELINES, CHECKPOINTS, CONFIG
from vrgcn.runs.interrupts import Interrupted, stop_requests
from vrgcn.runs.job import Job, prepare
from vrgcn.targets.opening import find_target
from vrgcn.training.clock import Clock
from vrgcn.training.listener import Listener, StopTraining
from vrgcn.training.state import Epoch
from vrgcn.tuning.baselines_first import SHARE as BASELINES_SHARE
from vrgcn.tuning.halving import is_pruned
from vrgcn.tuning.leaderboard import ranked
from vrgcn.tuning.members import Member
from vrgcn.tuning.session import KEPT, Session
from vrgcn.tuning.space import TriedSettings
from vrgcn.tuning.study import (
    COST,
    State,
    Tried,
    curves,
    end_trial,
    epoch_costs,
    next_trial,
    tried,
)

if TYPE_CHECKING:
    import optuna

_FIRST = 1 / 6  # largest share of the time for the first trial
_SHARE = 1 / 8  # smallest share of the time for another, so that a slow one does not take all
_SLOWER = 1.5  # times as long as the first it may take in any case
_TRIALS = 20  # trials of few labels that shall fit into the time, with fewer epochs if need be
_LEAST = 30  # epochs of these trials in any case
_ENOUGH = 0.5  # share of the first trial's epochs below which a trial is not begun
_CUT, _OVER = "it had its share of the time", "the time was over"
_UNFIT = 3  # trials in turn that would take too long after which a search ends
_TOO_SHORT = "too_short"  # key of the seconds that were left then
_MEMBERS = 40  # models, the best, from which an average is chosen
_HOPELESS = 5  # failures before any success after which a search gives up
_THERE = ("edges", "features")  # parts of the graph, which is in memory already


def run_trials(session: Session, trials: int | None) -> None:
    """Try settings until the number of trials or the time limit is reached."""
    study, search, unfit = session.study, session.search, 0
    if len(study.get_trials(deepcopy=False)) <= len(search.portfolio):  # or killed between them
        for start in search.first(lambda settings: settled(session, settings)):
            study.enqueue_trial(start, skip_if_exists=True)
    with stop_requests() as stop:
        while not _enough(session, trials):
            trial = next_trial(study, search.given.train.seed)
            ended = _try(session, trial)
            end_trial(study, trial, ended)
            session.note(ended)
            if stop.signal is not None:  # it came after the trial was done
                raise Interrupted(stop.signal, f"stopped after trial {ended.number}")
            unfit = unfit + 1 if not ended.epochs and ended.state == "pruned" else 0
            if unfit >= _UNFIT:
                study.set_user_attr(_TOO_SHORT, session.left)
                return
            if ended.reason == _OVER:  # seconds that are left would begin trials that tell nothing
                return


def _enough(session: Session, trials: int | None) -> bool:
    """Return True if no more is tried: there are enough, no time is left, or there is no hope."""
    done = session.ended
    failed = [trial for trial in done if trial.state == "failed"]
    if len(failed) == len(done) >= _HOPELESS:
        said = f"the first {len(done)} trials failed, the last: {failed[-1].reason}"
        if not find_members(session):
            raise InputError(said)
        session.on_note(f"{said}; no more are tried")
        return True
    short = session.study.user_attrs.get(_TOO_SHORT, 0.0)
    return (trials is not None and len(done) >= trials) or (bool(done) and session.left <= short)


def find_members(session: Session) -> list[Member]:
    """Return the baselines and trials that have a model and a score, in order: a trial that was
    pruned may still add to an average. Of many, those with the best scores."""
    folder = session.folder / BASELINES
    members = [Member(ended, folder / name) for name, ended in session.baselines.items()]
    members += [Member(trial, session.trial_folder(trial.number)) for trial in tried(session.study)]
    kept = [member for member in members if (member.folder / MODEL).is_file()]
    models = [member.tried for member in kept]
    best = ranked(models, session.target.better, pruned=True)[:_MEMBERS]
    return [member for member in kept if member.tried in best]


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
    """Train as a trial says; errors of the trial itself are recorded, not raised."""
    clock, training = Clock(), _Training(session, trial)
    state: State
    try:
        state, reason, val = training.run(session.search.draw(trial))
    except (MemoryError, FloatingPointError, InputError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and not is_out_of_memory(error):
            raise
        state, val = "failed", training.best
        reason = (str(error).splitlines() or [type(error).__name__])[0]
    epochs = len(training.curve)
    return Tried(trial.number, state, val, dict(trial.params), epochs, clock.used, reason)


class _Training(Listener):
    """The training of one trial, which listens to it and stops it when it is behind.

    curve: its epochs so far; reported: the best score so far by epoch
    """

    hears_notes = True

    def __init__(self, session: Session, trial: optuna.Trial) -> None:
        self.session = session
        self.trial = trial
        self.curve: list[Epoch] = []
        self.pruned = False
        *self.others, self.reported = curves(session.study, trial)

    def run(self, settings: TriedSettings) -> tuple[State, str | None, float | None]:
        """Return how it ended, why, and the score of the kept model."""
        session, number = self.session, self.trial.number
        left, share = session.left, _share(session, number)
        settings = settled(session, settings)
        target = find_target(session.untested, settings.train)
        target.tested = False
        job = prepare(_build(session, settings), session.untested, settings.train, target)
        cost = _cost(job)
        self.trial.set_user_attr(COST, cost)
        self.costs = epoch_costs(session.study, self.trial)
        epoch = _predicted(session, cost)
        settings = _shortened(session, settings, epoch)
        self.epochs, limit = settings.train.epochs, min(left, share)
        # It may be one of which the first trial, which may have been cut short, had more.
        if epoch and limit / epoch < _ENOUGH * min(self.epochs, tried(session.study)[0].epochs):
            return "pruned", f"it would take about {seconds_text(epoch * self.epochs)}", None
        time_limit = None if limit == float("inf") else f"{max(limit, 0.001):.3f}s"
        config = replace(settings.train, diagnostics=0, time_limit=time_limit)
        folder = session.trial_folder(number)
        options = {**session.options, **settings.values(), "time_limit": None}
        resume = (folder / CONFIG).is_file()
        result = replace(job, config=config).run(folder, options, self, resume=resume)
        remove_folder(folder / CHECKPOINTS)  # it is never resumed from here
        if self.pruned:
            return "pruned", None, self.best
        if result.stopped != "time":
            return "complete", None, result.val
        counts = share < left or not number or _leads(session, result.val)
        return ("complete", _CUT, result.val) if counts else ("pruned", _OVER, result.val)

    @property
    def best(self) -> float | None:
        """The best score so far, for which a model is kept."""
        better, best = self.session.target.better, None
        for val in (point.val for point in self.curve if point.val is not None):
            best = val if best is None or better(val, best) else best
        return best

    def epoch(self, point: Epoch) -> None:
        self.curve.append(point)
        number, used = self.trial.number, self.session.clock.used
        self.session.leaderboard.epoch(number, point.epoch, self.epochs, point.val, used)
        best = self.best
        if point.val is None or best is None:
            return
        if point.epoch not in self.reported:  # before a kill or a rollback
            self.trial.report(best, point.epoch)
            self.reported[point.epoch] = best
        self._judge(point.epoch)

    def restore(self, curve: list[Epoch]) -> None:
        self.curve[:] = curve  # later epochs, before a rollback, have no model any more
        self._judge(len(curve))  # a signal may have stopped it after the step that it is pruned at

    def note(self, text: str) -> None:
        self.session.on_note(text)

    def _judge(self, epoch: int) -> None:
        known = {number: score for number, score in self.reported.items() if number <= epoch}
        larger = self.session.target.better(1.0, 0.0)
        self.pruned = is_pruned(
            [*self.others, known], epochs=self.epochs, larger=larger, costs=self.costs
        )
        if self.pruned:
            raise StopTraining


def _share(session: Session, number: int) -> float:
    """Return the seconds that a trial may take, however many there are."""
    limit = session.clock.limit
    if limit is None:
        return float("inf")
    if not number:
        return _FIRST * limit
    return max(_SHARE * limit, _SLOWER * tried(session.study)[0].seconds)


def _leads(session: Session, score: float | None) -> bool:
    """Return True if a score is better than that of every finished trial."""
    best = ranked(session.ended, session.target.better)
    if score is None or not best or best[0].val is None:
        return False
    return session.target.better(score, best[0].val)


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


def _predicted(session: Session, cost: float) -> float:
    """Return the seconds of an epoch by its cost and the speed of the trials before it; 0 if there
    is no limit or no trial yet."""
    if session.clock.limit is None:
        return 0.0
    noted = [frozen.user_attrs for frozen in session.study.get_trials(deepcopy=False)]
    trained = [each for each in noted if each.get("epochs") and COST in each]
    paid = sum(each["epochs"] * each[COST] for each in trained)
    return cost * sum(each["seconds"] for each in trained) / paid if paid else 0.0


def _shortened(session: Session, settings: TriedSettings, epoch: float) -> TriedSettings:
    """Return the settings with so many epochs that several trials fit into the time, where few
    nodes have labels: their runs hardly gain from longer training, and evaluate all nodes after
    every step.

    epoch: predicted seconds of one; 0: not known
    """
    limit = session.clock.limit
    if not epoch or limit is None or not few_labels(session.untested):
        return settings
    share = (1 - BASELINES_SHARE - KEPT) * limit / _TRIALS
    epochs = max(_LEAST, int(share / epoch))
    return settings.changed({"epochs": min(epochs, settings.train.epochs)})
