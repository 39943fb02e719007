"""A search that breaks off between any two of its writes goes on to the same trials."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.tuning.test_tuner import CONFIG, GRAPH, MODEL, KilledError, told
from vrgcn import tune
from vrgcn.files import writing
from vrgcn.tuning.leaderboard import Leaderboard
from vrgcn.tuning.tuner import TuneResult

optuna = pytest.importorskip("optuna")

TRIALS = 5


def search(folder: Path, every: str = "1") -> TuneResult:
    config = replace(CONFIG, checkpoint_every=every)
    names = ("layers", "dropout", "learning_rate")
    return tune(GRAPH, MODEL, config, trials=TRIALS, folder=folder, search=names)


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> TuneResult:
    found = search(tmp_path_factory.mktemp("whole"))
    assert {"complete", "pruned"} == {trial.state for trial in found.trials}
    return found


Dying = Callable[[pytest.MonkeyPatch], None]


def between_the_first(patch: pytest.MonkeyPatch) -> None:
    add, added = optuna.Study.enqueue_trial, []

    def enqueue(self, *args, **kwargs) -> None:
        if added:
            raise KilledError
        added.append(add(self, *args, **kwargs))

    patch.setattr(optuna.Study, "enqueue_trial", enqueue)


def after_a_score_was_reported(patch: pytest.MonkeyPatch) -> None:
    report = optuna.Trial.report

    def die(self, value: float, step: int) -> None:
        report(self, value, step)
        if (self.number, step) == (1, 2):
            raise KilledError

    patch.setattr(optuna.Trial, "report", die)


def as_checkpoints_are_removed(patch: pytest.MonkeyPatch) -> None:
    def die(folder: Path, **_: object) -> None:
        if "checkpoints" in Path(folder).name:
            shutil_rmtree(next(Path(folder).iterdir()))
            raise KilledError
        shutil_rmtree(folder, ignore_errors=True)

    shutil_rmtree = shutil.rmtree
    patch.setattr(writing.shutil, "rmtree", die)


def before_the_table_is_written(patch: pytest.MonkeyPatch) -> None:
    shown = Leaderboard.ended

    def die(self, trial) -> None:
        if trial.number == TRIALS - 1:
            raise KilledError
        shown(self, trial)

    patch.setattr(Leaderboard, "ended", die)


@pytest.mark.parametrize(
    ("die", "every"),
    [
        (between_the_first, "0"),
        (after_a_score_was_reported, "0"),  # the trial is repeated
        (after_a_score_was_reported, "1"),  # it goes on from its checkpoint
        (as_checkpoints_are_removed, "1"),
        (before_the_table_is_written, "0"),
    ],
)
def test_it_goes_on_to_the_same_trials(
    die: Dying, every: str, whole: TuneResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        die(patch)
        with pytest.raises(KilledError):
            search(tmp_path, every)
    assert told(search(tmp_path, every)) == told(whole)
    board = json.loads((tmp_path / "leaderboard.json").read_text())["trials"]
    assert [t["val"] for t in board] == [t.val for t in whole.trials]
    assert not [path for path in tmp_path.rglob(".*") if path.name.endswith("partial")]


def test_a_trial_that_was_being_pruned_may_go_on(
    whole: TuneResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Optuna's pruner notes what it decided before it says so, and is not asked twice."""
    pruner = optuna.pruners.SuccessiveHalvingPruner
    prune = pruner.prune

    def die(self, study, trial) -> bool:
        if prune(self, study, trial):
            raise KilledError
        return False

    with monkeypatch.context() as patch:
        patch.setattr(pruner, "prune", die)
        with pytest.raises(KilledError):
            search(tmp_path, "0")
    found = search(tmp_path, "0")
    assert [t.state for t in found.trials if t.state not in ("complete", "pruned")] == []
    assert len(found.trials) == TRIALS
    first = next(t.number for t in whole.trials if t.state == "pruned")
    assert told(found)[:first] == told(whole)[:first]
    assert found.trials[first].values == whole.trials[first].values
    assert found.trials[first].epochs > whole.trials[first].epochs
