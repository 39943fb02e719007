"""A search that is killed before a write ends exactly as one that was never killed.

`make test` tries the first and the last write of each kind, `make soak` each write.
"""

from __future__ import annotations

import re
import shutil
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import small_graph
from tests.endings import ending
from tests.tuning.test_tuner import CONFIG, MODEL, told
from tests.writes import before_each_write
from vrgcn import Dropout, tune
from vrgcn.engine.batch import Batch
from vrgcn.runs.interrupts import Interrupted
from vrgcn.training.divergence import DivergedError
from vrgcn.training.trainer import Trainer
from vrgcn.tuning.finishing import TuneResult
from vrgcn.tuning.leaderboard import Leaderboard
from vrgcn.tuning.study import STUDY

optuna = pytest.importorskip("optuna")

GRAPH = small_graph(60)
BASELINES = ("linear", "linear-2")
GIVEN = replace(CONFIG, batch_size=99, learning_rate=0.02, estimator="exact", seed=28)


def search(folder: Path, every: str, trials: int = 3, **given: Any) -> TuneResult:
    """every: epochs between checkpoints; "0": a trial that is killed is repeated"""
    config = replace(GIVEN, checkpoint_every=every, **given)
    return tune(
        *(GRAPH, MODEL, config),
        trials=trials,
        folder=folder,
        search=("learning_rate", "dropout"),
        baselines=BASELINES,
        on_note=lambda note: None,
    )


def told_of(found: TuneResult) -> tuple[object, ...]:
    return told(found), found.best.number, found.result.val, found.result.test


def counts(write: str) -> bool:
    """True for each write to the study, those to a trial's folder that may change how the trial
    goes on (a checkpoint comes or goes, the result comes), and each file of a baseline, of the
    average and of the best that is complete."""
    call, _, name = write.partition(" ")
    if name.startswith("trials/"):
        return call in ("rename", "rmdir") or name.endswith("result.json")
    return call == "COMMIT" or (
        call == "replace" and name.startswith(("baselines/", "average/", "best/"))
    )


def ends_of_kinds(writes: list[str]) -> set[int]:
    """Numbers of the first and the last write of each kind: to another trial, step or baseline is
    no other kind."""
    kinds: dict[str, list[int]] = {}
    for number, write in enumerate(writes):
        kind = re.sub(r"\d+|(?<=baselines/)[^/]+", "*", write)
        kinds.setdefault(kind, []).append(number)
    return {end for numbers in kinds.values() for end in (numbers[0], numbers[-1])}


def killed_in_the_last_trial(
    home: Path, every: str, trials: int, *, each: bool, **given: Any
) -> TuneResult:
    """Resume the search in `home` to so many trials, then do so again from what a kill would have
    left before each write, or before the first and last of each kind: all end in the same.
    Returns the end."""
    killed, writes = home.parent / "killed", []

    def keep(write: str) -> None:
        if counts(write):
            shutil.copytree(home, killed / str(len(writes)))  # as a kill would leave it
            writes.append(write)

    with before_each_write(home, keep):
        wanted = search(home, every, trials, **given)
    assert writes.count("COMMIT") > 10  # begun, drawn, reported, ended, noted
    ends = ("average/model.safetensors", "average/result.json", "best/result.json")
    assert {f"replace {name}" for name in ends} <= set(writes)
    for number in range(len(writes)) if each else sorted(ends_of_kinds(writes)):
        write = writes[number]
        folder, where = killed / str(number), f"killed in trial {trials - 1} before {write}"
        assert (folder / STUDY).exists()
        assert told_of(search(folder, every, trials, **given)) == told_of(wanted), where
        assert ending(folder) == ending(home), where
        left = [p for p in folder.rglob(".*") if p.name.endswith((".partial", ".lock"))]
        assert not left, (where, left)
        shutil.rmtree(folder)
    return wanted


@pytest.mark.parametrize("each", [False, pytest.param(True, marks=pytest.mark.soak)])
@pytest.mark.parametrize(("every", "first"), [("0", 2), ("1", 1)])
def test_killed_before_a_write_it_ends_as_if_it_had_not_been(
    every: str, first: int, each: bool, tmp_path: Path
) -> None:
    """In the last of one, two and three trials, and between trials; of three, unless before each
    write."""
    for trials in range(first, 4):
        if each or trials == 3:
            wanted = killed_in_the_last_trial(tmp_path / "whole", every, trials, each=each)
        else:
            search(tmp_path / "whole", every, trials)
    # The second is behind at the second rung, the third at the first.
    ends = [(t.state, t.epochs) for t in wanted.trials]
    assert ends == [("complete", 3), ("paused", 2), ("paused", 1)]
    assert told(wanted) == told(search(tmp_path / "at once", every))


def _dropout(trainer: Trainer) -> float:
    return next(part.p for part in trainer.model.modules() if isinstance(part, Dropout))


@pytest.mark.parametrize("each", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_killed_in_a_trial_that_is_rolled_back_it_ends_as_if_it_had_not_been(
    each: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second trial diverges in its second epoch and goes back to its beginning: the first
    epoch comes again, with another score, after it was reported."""
    update, rolled_back = Trainer._update, []

    def lost(self, batch: Batch) -> float:
        later = _dropout(self) != MODEL.dropout
        if later and self.minibatches.step == 1 and not self.progress.rollbacks:
            rolled_back.append(batch)
            raise DivergedError("the training loss became nan", "")
        return update(self, batch)

    monkeypatch.setattr(Trainer, "_update", lost)
    given = {"on_nan": "rollback"}
    search(tmp_path / "whole", "0", 1, **given)
    wanted = killed_in_the_last_trial(tmp_path / "whole", "0", 2, each=each, **given)
    assert [(t.state, t.epochs) for t in wanted.trials] == [("complete", 3), ("paused", 2)]
    assert len(rolled_back) > (10 if each else 3)


def test_stopped_in_the_step_after_which_a_trial_is_paused_it_is_paused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The signal is obeyed when the trial has been judged, and its last epoch is in a checkpoint:
    it does not come again."""
    wanted = search(tmp_path / "whole", "0")
    shown = Leaderboard.epoch
    paused = [(t.number, t.epochs) for t in wanted.trials if t.state == "paused"]

    def stop(self, number: int, epoch: int, *rest) -> None:
        shown(self, number, epoch, *rest)
        if (number, epoch) in paused[:1]:
            paused.pop(0)
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(Leaderboard, "epoch", stop)
    assert paused
    for _ in list(paused):
        with pytest.raises(Interrupted):
            search(tmp_path / "cut", "0")
    assert not paused
    assert told_of(search(tmp_path / "cut", "0")) == told_of(wanted)
    assert ending(tmp_path / "cut") == ending(tmp_path / "whole")
