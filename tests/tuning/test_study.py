"""A trial that is cut off while it is drawn has the settings that it would have had."""

from __future__ import annotations

import random
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.messages import refused
from tests.writes import before_each_write
from vrgcn import TrainConfig
from vrgcn.files.writing import DiskFullError
from vrgcn.models.config import ModelConfig
from vrgcn.tuning.space import SPACE, Search, TriedSettings
from vrgcn.tuning.study import (
    STUDY,
    Tried,
    begin_trial,
    courses,
    drawn_values,
    end_trial,
    interrupted_trial,
    open_study,
    resumed_trial,
    tried,
)

optuna = pytest.importorskip("optuna")

GIVEN = TriedSettings(ModelConfig(model="gcn"), TrainConfig(estimator="cvd"))


def begun(study: Any) -> Any:
    """The trial that was interrupted, or a new one."""
    return interrupted_trial(study) or begin_trial(
        study, lambda: drawn_values(study, 3, Search(GIVEN).draw)
    )


def settings_after(folder: Path, cut: int) -> dict[str, Any]:
    """Return the settings of the trial after those of a study, whose drawing was interrupted after
    some of them."""
    with open_study(folder, larger=True) as study:
        trial = begun(study)
        for name in list(SPACE)[:cut]:
            Search(GIVEN).space[name].suggest(trial, name)
    with open_study(folder, larger=True) as study:
        trial = begun(study)
        Search(GIVEN).draw(trial)
        assert [t.state for t in tried(study)][trial.number :] == ["running"]
        return trial.params


@pytest.mark.parametrize("trials", [2, 10])  # drawn at random, and by what was learned
def test_settings_do_not_depend_on_where_their_drawing_was_cut_off(
    trials: int, tmp_path: Path
) -> None:
    before = study_in(tmp_path, trials).read_bytes()
    whole = settings_after(tmp_path, 0)
    assert len(whole) >= len(SPACE) - 3  # an MLP has no estimator and no tables of neighbours
    for cut in (1, 4, 7):
        (tmp_path / STUDY).write_bytes(before)
        assert settings_after(tmp_path, cut) == whole


def test_no_trial_that_is_drawn_at_random_repeats_another(tmp_path: Path) -> None:
    study_in(tmp_path, 5)
    with open_study(tmp_path, larger=True) as study:
        drawn = [trial.params["learning_rate"] for trial in study.get_trials()]
    assert len(set(drawn)) == 5


def test_a_study_that_was_cut_off_while_it_was_made_is_made_to_its_end(tmp_path: Path) -> None:
    """In a file Optuna's tables would be a transaction each."""
    whole, writes = tmp_path / "whole", []

    def keep(write: str) -> None:
        shutil.copytree(whole, tmp_path / str(len(writes)))
        writes.append(write)

    whole.mkdir()
    with before_each_write(whole, keep), open_study(whole, larger=True):
        pass
    hidden = f".{STUDY}.*.partial"
    assert writes == [f"open {hidden}", f"fsync {hidden}", f"replace {STUDY}", "COMMIT"]
    for number, write in enumerate(writes):
        study_in(tmp_path / str(number))
        with open_study(tmp_path / str(number), larger=True) as study:
            assert [t.val for t in tried(study)] == [0.0, 0.1, 0.2], write


def test_a_paused_trial_teaches_the_sampler_and_is_resumed_as_it_was(tmp_path: Path) -> None:
    study_in(tmp_path, 5)

    def drawn(state: str) -> dict[str, Any]:
        folder = tmp_path / state
        shutil.copytree(tmp_path, folder, ignore=lambda *_: ["paused", "failed"])
        with open_study(folder, larger=True) as study:
            trial = begun(study)
            Search(GIVEN).draw(trial)
            trial.report(0.9, 3)
            end_trial(study, trial, Tried(5, state, 0.9, epochs=3))
            return drawn_values(study, 3, Search(GIVEN).draw)

    assert drawn("paused") != drawn("failed")
    with open_study(tmp_path / "paused", larger=True) as study:
        assert (tried(study)[5].state, tried(study)[5].val) == ("paused", 0.9)
        assert interrupted_trial(study) is None
        assert courses(study)[5].paused
        resumed_trial(study, 5, rungs=1)
        found = interrupted_trial(study)
        assert found is not None
        assert found.number == 5
        assert [t.state for t in tried(study)] == [*["complete"] * 5, "running"]
        assert dict(courses(study)[5].curve) == {3: 0.9}


def study_in(folder: Path, trials: int = 3) -> Path:
    after_some = Search(GIVEN)
    with open_study(folder, larger=True) as study:
        for number in range(trials):
            trial = begun(study)
            after_some.draw(trial)
            end_trial(study, trial, Tried(trial.number, "complete", number / 10))
    return folder / STUDY


def damaged(content: bytes, seed: int) -> bytes:
    draw = random.Random(seed)
    place, kind = draw.randrange(len(content)), seed % 4
    if kind == 0:
        return content[:place]
    if kind == 1:
        return content[:place] + draw.randbytes(200) + content[place + 200 :]
    if kind == 2:
        return draw.randbytes(2000)
    return content.replace(draw.choice([b"fixed", b"Distribution", b"{", b"CREATE"]), b"x", 3)


def test_a_damaged_study_is_read_or_refused_by_its_name(tmp_path: Path) -> None:
    file = study_in(tmp_path)
    right, refused = file.read_bytes(), 0
    for seed in range(16):
        file.write_bytes(damaged(right, seed))
        try:
            with open_study(tmp_path, larger=True) as study:
                tried(study)
                Search(GIVEN).draw(begun(study))
        except (ValueError, OSError) as error:
            assert str(file) in str(error), error  # noqa: PT017
            refused += 1
    assert refused > 4


def test_a_full_disk_is_told_by_the_study_s_file(tmp_path: Path, monkeypatch) -> None:
    def full(*_: object) -> None:
        raise optuna.exceptions.StorageInternalError from sqlite3.OperationalError(
            "database or disk is full"
        )

    study_in(tmp_path)
    monkeypatch.setattr(optuna.storages.RDBStorage, "set_trial_param", full)
    monkeypatch.setattr(optuna.storages._CachedStorage, "set_trial_param", full)
    with refused(DiskFullError):
        study_in(tmp_path)
