"""Whose turn it is in a search: a new trial, one that was paused, or none any more.

1. A paused trial that is in the better third of its rung is promoted (halving.py).
2. Else a trial begins: first the candidates of `vrgcn train`, in its own settings; then a portfolio
   until the fifth trial; from the sixth on drawn ones and the portfolio's rest in turn.
3. In the last quarter of a limited time no trial begins. The best of the paused ones is resumed, to
   its next rung, until the time is over.

No trial has a fixed share of the time: how far one comes is a matter of its scores. But one that is
slow may train for a fifth of the time at once; then it waits until the others had their turn: an
average gains more by several networks than by the last epochs of one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from vrgcn.files.mistakes import InputError
from vrgcn.files.writing import remove_folder
from vrgcn.runs.folder import CHECKPOINTS
from vrgcn.tuning.leaderboard import ranked
from vrgcn.tuning.session import Session
from vrgcn.tuning.space import TriedSettings
from vrgcn.tuning.study import (
    LEARNED,
    Tried,
    begin_trial,
    drawn_values,
    interrupted_trial,
    resumed_trial,
    tried,
)

if TYPE_CHECKING:
    import optuna

CUT = "it had its share of the time"
_LAST = 0.25  # share of the time in which no trial begins
_AT_ONCE = 0.2  # share of the time that one trial may train for before others had their turn
_UNFIT = 3  # trials in turn that would take too long after which no more begin
_TOO_SHORT = "too_short"  # key of the number of trials then, and of the seconds that were left
_HOPELESS = 5  # failures before any success after which a search gives up
_RESUMABLE = 8  # paused trials, the best, whose checkpoints are kept

Settle = Callable[[TriedSettings], TriedSettings]


def next_turn(session: Session, trials: int | None, settle: Settle) -> optuna.Trial | None:
    """Return the trial that is trained next; None if the search is over.

    trials: how many at most; settle: gives an estimator in place of `auto`
    """
    study = session.study
    stopped = interrupted_trial(study)
    if stopped is not None:
        return stopped
    done = tried(study)
    if _hopeless(session, done) or (done and session.left <= session.predicted(0.0, 0)):
        return None
    last = _is_last(session)
    waiting = () if last else tuple(trial.number for trial in done if trial.reason == CUT)
    known, halving = session.courses(), session.halving
    chosen = halving.promoted(known, waiting)
    begins = _may_begin(session, done, trials)
    if chosen is None and session.clock.limit is not None and (last or not begins):
        chosen = halving.best([course for course in known if course.paused])
    if chosen is not None:
        return resumed_trial(study, chosen.number, halving.rungs(chosen))
    return begin_trial(study, lambda: _values(session, len(done), settle)) if begins else None


def share_of(session: Session) -> float:
    """Return the seconds that a trial may train for at once."""
    limit = session.clock.limit
    return float("inf") if limit is None or _is_last(session) else _AT_ONCE * limit


def drop_checkpoints(session: Session) -> None:
    """Remove the checkpoints of trials that have ended, and of the paused ones all but those of the
    best: they lie on disk, and far behind none is ever promoted."""
    paused = [trial for trial in tried(session.study) if trial.state == "paused"]
    better = session.target.better
    kept = {trial.number for trial in ranked(paused, better)[:_RESUMABLE]}
    for trial in session.ended:
        folder = session.trial_folder(trial.number) / CHECKPOINTS
        if trial.number not in kept and folder.is_dir():
            remove_folder(folder)


def _is_last(session: Session) -> bool:
    """Return True in the last part of the time."""
    limit = session.clock.limit
    return limit is not None and session.left <= _LAST * limit


def _may_begin(session: Session, done: list[Tried], trials: int | None) -> bool:
    """Return True if another trial may begin: there are not enough, and it would not take too
    long."""
    if trials is not None and len(done) >= trials:
        return False
    unfit = [not trial.epochs and trial.state == "paused" for trial in done[-_UNFIT:]]
    attrs = session.study.user_attrs
    if len(unfit) < _UNFIT or not all(unfit):
        return True
    if attrs.get(_TOO_SHORT, (0, 0.0))[0] != len(done):
        session.study.set_user_attr(_TOO_SHORT, (len(done), session.left))
    return bool(session.left > session.study.user_attrs[_TOO_SHORT][1])


def _hopeless(session: Session, done: list[Tried]) -> bool:
    """Return True if all of the first trials failed."""
    failed = [trial for trial in done if trial.state == "failed"]
    if not len(failed) == len(done) >= _HOPELESS:
        return False
    said = f"the first {len(done)} trials failed, the last: {failed[-1].reason}"
    if not session.members():
        raise InputError(said)
    session.on_note(f"{said}; no more are tried")
    return True


def _values(session: Session, number: int, settle: Settle) -> dict[str, Any]:
    """Return the searched settings of a new trial."""
    given = len(session.candidates)
    if number < given:
        return session.search.values_of(settle(session.candidates[number]))
    first = max(LEARNED, given)
    place = number - given if number < first else first - given + (number - first) // 2
    if number < first or (number - first) % 2:
        start = session.start(place, settle)
        if start is not None:
            return start
    return drawn_values(session.study, session.search.given.train.seed, session.search.draw)
