"""The study of a search: Optuna's sampler, pruner and storage, and trials as plain values."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import optuna

STUDY = "study.sqlite"
_NAME = "vrgcn"
_UNPRUNED = 3  # trials that run to their end before any is pruned: what others are compared with
_DRAWN = 8  # trials, the given ones among them, before the sampler learns from them

State = Literal["complete", "pruned", "failed", "running"]


@dataclass(frozen=True)
class Tried:
    """A trial. val: its best validation score; values: the settings that were searched
    epochs, seconds: how long it was; reason: why it failed or was cut short
    """

    number: int
    state: State
    val: float | None
    values: dict[str, Any] = field(default_factory=dict)
    epochs: int = 0
    seconds: float = 0.0
    reason: str | None = None


def check_optuna() -> None:
    """Refuse to tune where Optuna is not installed."""
    try:
        import optuna  # noqa: F401
    except ImportError:
        raise ValueError("tuning needs Optuna: pip install 'vrgcn[tune]'") from None


@contextmanager
def open_study(folder: Path, *, larger: bool, epochs: int) -> Iterator[optuna.Study]:
    """The study in a folder, a new one where there is none.

    larger: whether a larger score is better
    epochs: of a trial that is not pruned
    """
    import optuna

    def connect() -> sqlite3.Connection:  # by the path itself: in an address, ? and % mean more
        return sqlite3.connect(folder / STUDY, check_same_thread=False)

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    storage = optuna.storages.RDBStorage("sqlite://", engine_kwargs={"creator": connect})
    try:
        yield optuna.create_study(
            storage=storage,
            study_name=_NAME,
            load_if_exists=True,
            direction="maximize" if larger else "minimize",
            pruner=optuna.pruners.MedianPruner(
                n_startup_trials=_UNPRUNED, n_warmup_steps=max(1, epochs // 10)
            ),
        )
    finally:
        storage.remove_session()
        storage.engine.dispose()
        optuna.logging.set_verbosity(before)


def next_trial(study: optuna.Study, seed: int) -> optuna.Trial:
    """The trial that was cut off when a search was stopped, or else a new one. What is drawn
    depends on the seed and the trials before it alone, not on whether the search was stopped."""
    import optuna

    done = len(study.get_trials(deepcopy=False, states=_ended()))
    study.sampler = optuna.samplers.TPESampler(
        seed=(seed * 1_000_003 + done) % 2**32,
        n_startup_trials=_DRAWN,
    )
    for frozen in study.get_trials(deepcopy=False, states=[optuna.trial.TrialState.RUNNING]):
        return optuna.Trial(study, frozen._trial_id)
    return study.ask()


def tried(study: optuna.Study) -> list[Tried]:
    """The trials so far, in their order."""
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


def end_trial(study: optuna.Study, trial: optuna.Trial, ended: Tried) -> None:
    """Tell the study how a trial ended."""
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
