"""The study of a search: Optuna's sampler and storage, and trials as plain values."""

from __future__ import annotations

import errno
import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.files.writing import explained, new_file
from vrgcn.runs.folder import STUDY

if TYPE_CHECKING:
    import optuna

_NAME = "vrgcn"
_IDENTITY = "identity"  # key of the user attribute
COST = "cost"  # key of the counted cost of an epoch of a trial
_DRAWN = 8  # trials, including the given ones, before the sampler learns from them

State = Literal["complete", "pruned", "failed", "running"]


@dataclass(frozen=True)
class Tried:
    """A trial, or a baseline that was fitted.

    number: of the trial; -1 of a baseline
    val: its best validation score; values: the settings that were searched
    epochs, seconds: how long it was; reason: why it failed or was cut short
    baseline: its name; None of a trial
    """

    number: int
    state: State
    val: float | None
    values: dict[str, Any] = field(default_factory=dict)
    epochs: int = 0
    seconds: float = 0.0
    reason: str | None = None
    baseline: str | None = None

    @property
    def name(self) -> str:
        return self.baseline or f"trial {self.number}"


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
        return sqlite3.connect(folder / STUDY, check_same_thread=False)

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


def next_trial(study: optuna.Study, seed: int) -> optuna.Trial:
    """Return the interrupted trial of a stopped search, or a new one. Drawn settings depend only on
    the seed and the trials before it, not on whether the search was stopped."""
    import optuna

    done = len(study.get_trials(deepcopy=False, states=_ended()))
    study.sampler = optuna.samplers.TPESampler(
        seed=(seed * 1_000_003 + done) % 2**32,
        n_startup_trials=_DRAWN,
    )
    for frozen in study.get_trials(deepcopy=False, states=[optuna.trial.TrialState.RUNNING]):
        trial = optuna.Trial(study, frozen._trial_id)
        _pass_over(trial, frozen)
        return trial
    return study.ask()


def _pass_over(trial: optuna.Trial, frozen: optuna.trial.FrozenTrial) -> None:
    """Draw again the settings that an interrupted trial already had, so that the rest are drawn as
    they would have been."""
    fixed = frozen.system_attrs.get("fixed_params", {})
    for name, bounds in frozen.distributions.items():
        if not (name in fixed or bounds.single() or name in trial.relative_params):
            trial.study.sampler.sample_independent(trial.study, frozen, name, bounds)


def tried(study: optuna.Study) -> list[Tried]:
    """Return the trials so far, in their order."""
    import optuna

    names: dict[optuna.trial.TrialState, State] = {
        optuna.trial.TrialState.COMPLETE: "complete",
        optuna.trial.TrialState.PRUNED: "pruned",
        optuna.trial.TrialState.FAIL: "failed",
        optuna.trial.TrialState.RUNNING: "running",
    }
    return [
        Tried(
            frozen.number,
            names[frozen.state],
            frozen.user_attrs.get("val"),
            dict(frozen.params),
            frozen.user_attrs.get("epochs", 0),
            frozen.user_attrs.get("seconds", 0.0),
            frozen.user_attrs.get("reason"),
        )
        for frozen in study.get_trials(deepcopy=False)
        if frozen.state in names
    ]


def curves(study: optuna.Study, trial: optuna.Trial) -> list[dict[int, float]]:
    """Return the reported scores by epoch, of the trials before one and of itself."""
    trials = study.get_trials(deepcopy=False)[: trial.number + 1]
    return [dict(frozen.intermediate_values) for frozen in trials]


def epoch_costs(study: optuna.Study, trial: optuna.Trial) -> list[float]:
    """Return the noted cost of an epoch, of the trials before one and of itself; that of the first
    where none was noted."""
    trials = study.get_trials(deepcopy=False)[: trial.number + 1]
    first = trials[0].user_attrs.get(COST, 1.0)
    return [frozen.user_attrs.get(COST, first) for frozen in trials]


def end_trial(study: optuna.Study, trial: optuna.Trial, ended: Tried) -> None:
    """Record in the study how a trial ended."""
    import optuna

    for name in ("val", "epochs", "seconds", "reason"):
        trial.set_user_attr(name, getattr(ended, name))
    if ended.state == "complete":
        study.tell(trial, ended.val)
    elif ended.state == "pruned":
        study.tell(trial, state=optuna.trial.TrialState.PRUNED)
    else:
        study.tell(trial, state=optuna.trial.TrialState.FAIL)


def _ended() -> tuple[optuna.trial.TrialState, ...]:
    import optuna

    kinds = optuna.trial.TrialState
    return (kinds.COMPLETE, kinds.PRUNED, kinds.FAIL)
