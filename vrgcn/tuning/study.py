"""The study of a search: Optuna's sampler and storage, and trials as plain values."""

from __future__ import annotations

import errno
import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.files.writing import explained, new_file
from vrgcn.runs.folder import STUDY, TRIAL
from vrgcn.tuning.halving import Course

if TYPE_CHECKING:
    import optuna

_NAME = "vrgcn"
_IDENTITY = "identity"  # key of the user attribute
# Keys of a trial: the counted cost of an epoch, the seconds of its steps and evaluations, in how
# many parts it was trained, and the rungs at which it was let pass.
COST, TRAINED, PARTS, PASSED = "cost", "trained", "parts", "passed"
LEARNED = 5  # trials from which the sampler learns
_STATE = "state"  # key of "paused"; Optuna has no such state, and calls these trials running

State = Literal["complete", "paused", "failed", "running"]


@dataclass(frozen=True)
class Tried:
    """A trial, or a baseline that was fitted.

    number: of the trial; -1 of a baseline
    state: paused if it is behind, or its time was over: it can be resumed
    val: its best validation score; values: the settings that were searched
    epochs, seconds: how long it was; reason: why it failed or was cut short
    baseline: its name; None of a trial
    predicting_seconds: in which it predicts the validation nodes
    """

    number: int
    state: State
    val: float | None
    values: dict[str, Any] = field(default_factory=dict)
    epochs: int = 0
    seconds: float = 0.0
    reason: str | None = None
    baseline: str | None = None
    predicting_seconds: float = 0.0

    @property
    def name(self) -> str:
        return self.baseline or f"trial {self.number}"

    @property
    def folder(self) -> str:
        """Name of its folder."""
        return self.baseline or f"{TRIAL}{self.number:03d}"


def check_optuna() -> None:
    """Raise if Optuna is not installed."""
    try:
        import optuna  # noqa: F401
    except ImportError:
        raise InputError("tuning needs Optuna: pip install 'vrgcn[tune]'") from None


@contextmanager
def open_study(folder: Path, *, larger: bool) -> Iterator[optuna.Study]:
    """Open the study in a folder, or create one.

    larger: True if a larger score is better
    """
    import optuna

    def connect() -> sqlite3.Connection:  # by the path itself: in an address, ? and % mean more
        return _quick(sqlite3.connect(folder / STUDY, check_same_thread=False))

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with ExitStack() as stack:
        stack.callback(optuna.logging.set_verbosity, before)
        stack.enter_context(_storage_errors(folder / STUDY))
        if not (folder / STUDY).exists():
            content = _empty_study()
            with new_file(folder / STUDY) as file:
                file.write(content)
        with _damage_told(folder / STUDY):
            storage = optuna.storages.RDBStorage("sqlite://", engine_kwargs={"creator": connect})
            stack.callback(storage.engine.dispose)
            stack.callback(storage.remove_session)
            study = optuna.create_study(
                storage=storage,
                study_name=_NAME,
                load_if_exists=True,
                direction="maximize" if larger else "minimize",
                pruner=optuna.pruners.NopPruner(),  # halving.py judges
            )
            tried(study)
        yield study


def _quick(connection: sqlite3.Connection) -> sqlite3.Connection:
    """Make commits that wait for no disk: each epoch of a trial is one, and on small graphs they
    would take longer than the epochs. A process that is killed loses nothing; without power the
    last commits may be lost, and no other."""
    for pragma in ("journal_mode = WAL", "synchronous = NORMAL"):
        connection.execute(f"PRAGMA {pragma}")
    return connection


def _empty_study() -> bytes:
    """Return a database with Optuna's tables. They are created in memory: in a file each table is a
    transaction of its own, and a process that is killed between two of them leaves a study that
    cannot be used."""
    import optuna

    with closing(sqlite3.connect(":memory:", check_same_thread=False)) as memory:
        optuna.storages.RDBStorage("sqlite://", engine_kwargs={"creator": lambda: memory})
        return memory.serialize()


def note_identity(
    study: optuna.Study, identity: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the identity that a study began with, and the present one, as JSON."""
    now = json.loads(json.dumps(identity))
    if _IDENTITY not in study.user_attrs:
        study.set_user_attr(_IDENTITY, now)
    return study.user_attrs[_IDENTITY], now


@contextmanager
def _damage_told(file: Path) -> Iterator[None]:
    """Turn any error of reading a damaged study into an error that names its file."""
    try:
        yield
    except Exception as error:
        if _is_full(error):
            raise
        why = (str(error).splitlines() or [""])[0]
        raise InputError(
            f"{file} cannot be read ({type(error).__name__}: {why}): it is damaged, or no search "
            "of vrgcn; the trials' own folders are beside it, and "
            f"{setting('overwrite', python='another folder=')} begins again"
        ) from None


@contextmanager
def _storage_errors(file: Path) -> Iterator[None]:
    """Turn errors of the database during use into errors that name its file."""
    from optuna.exceptions import StorageInternalError
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (SQLAlchemyError, StorageInternalError) as error:
        if _is_full(error):
            with explained(file):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error
        why = str(error.__cause__ or error).splitlines()[0]
        raise OSError(f"{file} cannot be read or written: {why}") from error


def _is_full(error: BaseException) -> bool:
    """Return True if SQLite reports that the database has no room."""
    return "disk is full" in f"{error} {error.__cause__}"


def interrupted_trial(study: optuna.Study) -> optuna.Trial | None:
    """Return the trial that was being trained when a search was stopped; None if none was."""
    import optuna

    for frozen in study.get_trials(deepcopy=False, states=[optuna.trial.TrialState.RUNNING]):
        if not is_paused(frozen):
            return optuna.Trial(study, frozen._trial_id)
    return None


def begin_trial(study: optuna.Study, values: Callable[[], dict[str, Any]]) -> optuna.Trial:
    """Return a new trial of some settings, unless a stopped search left one that had not begun."""
    import optuna

    if not study.get_trials(deepcopy=False, states=[optuna.trial.TrialState.WAITING]):
        study.enqueue_trial(values())
    return study.ask()


def drawn_values(
    study: optuna.Study, seed: int, draw: Callable[[optuna.Trial], object]
) -> dict[str, Any]:
    """Return the settings of a new trial, drawn by TPE from the seed and the scores of the trials
    so far. A paused one counts with its best score, as one that has ended."""
    import optuna

    sampler = optuna.samplers.TPESampler(
        seed=(seed * 1_000_003 + len(study.get_trials(deepcopy=False))) % 2**32,
        n_startup_trials=LEARNED,
    )
    learned = optuna.create_study(direction=study.direction, sampler=sampler)
    for frozen in study.get_trials():
        val = frozen.user_attrs.get("val")
        if is_paused(frozen) and val is not None:
            frozen.state, frozen.value = optuna.trial.TrialState.COMPLETE, val
            frozen.datetime_complete = frozen.datetime_start
        if frozen.state.is_finished():
            learned.add_trial(frozen)
    trial = learned.ask()
    draw(trial)
    return trial.params


def resumed_trial(study: optuna.Study, number: int, rungs: int) -> optuna.Trial:
    """Return a paused trial, to be resumed.

    rungs: which it came to, where it is not judged again
    """
    import optuna

    trial = optuna.Trial(study, study.get_trials(deepcopy=False)[number]._trial_id)
    trial.set_user_attr(PASSED, rungs)
    trial.set_user_attr(_STATE, "running")
    return trial


def noted(study: optuna.Study, number: int) -> dict[str, Any]:
    """Return what was noted of a trial, by its key."""
    return study.get_trials(deepcopy=False)[number].user_attrs


def is_paused(frozen: optuna.trial.FrozenTrial) -> bool:
    return frozen.user_attrs.get(_STATE) == "paused"


def tried(study: optuna.Study) -> list[Tried]:
    """Return the trials so far, in their order."""
    import optuna

    names: dict[optuna.trial.TrialState, State] = {
        optuna.trial.TrialState.COMPLETE: "complete",
        optuna.trial.TrialState.FAIL: "failed",
        optuna.trial.TrialState.RUNNING: "running",
    }
    return [
        Tried(
            frozen.number,
            "paused" if is_paused(frozen) else names[frozen.state],
            frozen.user_attrs.get("val"),
            dict(frozen.params),
            frozen.user_attrs.get("epochs", 0),
            frozen.user_attrs.get("seconds", 0.0),
            frozen.user_attrs.get("reason"),
            predicting_seconds=frozen.user_attrs.get("predicting_seconds", 0.0),
        )
        for frozen in study.get_trials(deepcopy=False)
        if frozen.state in names
    ]


def courses(study: optuna.Study) -> list[Course]:
    """Return what the trials have come to that did not fail, in their order."""
    import optuna

    trials = study.get_trials(deepcopy=False)
    first = trials[0].user_attrs.get(COST, 1.0) if trials else 1.0
    return [
        Course(
            frozen.number,
            frozen.intermediate_values,
            frozen.user_attrs.get(COST, first) / first,
            ended=frozen.state == optuna.trial.TrialState.COMPLETE,
            paused=is_paused(frozen),
        )
        for frozen in trials
        if frozen.state != optuna.trial.TrialState.FAIL
    ]


def end_trial(study: optuna.Study, trial: optuna.Trial, ended: Tried) -> None:
    """Record in the study how far a trial came. A paused one stays open: it may be resumed."""
    import optuna

    for name in ("val", "epochs", "seconds", "reason", "predicting_seconds"):
        trial.set_user_attr(name, getattr(ended, name))
    if ended.state == "complete":
        study.tell(trial, ended.val)
    elif ended.state == "paused":
        trial.set_user_attr(_STATE, "paused")
    else:
        study.tell(trial, state=optuna.trial.TrialState.FAIL)
