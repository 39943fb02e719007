"""Checkpoints on disk: what is written comes back, and what is damaged is told by name."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.messages import refused
from tests.training.test_state import advance, assert_same, finish, trainer
from vrgcn.files import writing
from vrgcn.files.writing import DiskFullError
from vrgcn.runs import checkpoint as module
from vrgcn.runs.checkpoint import (
    HISTORIES,
    STATE,
    SUMS,
    WEIGHTS,
    DamagedCheckpointError,
    checkpoints_in,
    load_checkpoint,
    newest_checkpoint,
    save_checkpoint,
)
from vrgcn.runs.identity import identity
from vrgcn.training.state import TrainState
from vrgcn.training.trainer import Trainer

FILES = [WEIGHTS, HISTORIES, STATE, SUMS]


def written(folder: Path, steps: int = 5, **settings: object) -> tuple[Trainer, Path]:
    run = trainer(**({"estimator": "cvd", "history_dtype": "float16"} | settings))
    advance(run, steps)
    return run, save_checkpoint(folder, run.state(copied=False), identity(run))


def assert_same_state(one: TrainState, other: TrainState) -> None:
    assert one.position == other.position
    assert replace(one.progress, used=0.0) == replace(other.progress, used=0.0)
    assert one.schedule == other.schedule
    for part in ("model", "histories", "random", "best"):
        a, b = getattr(one, part) or {}, getattr(other, part) or {}
        assert list(a) == list(b)
        assert all(torch.equal(a[k], b[k]) and a[k].dtype == b[k].dtype for k in a)
    assert one.optimizer["param_groups"] == other.optimizer["param_groups"]
    assert one.optimizer["state"].keys() == other.optimizer["state"].keys()
    for key, moments in one.optimizer["state"].items():
        for name, value in moments.items():
            theirs = other.optimizer["state"][key][name]
            assert torch.equal(torch.as_tensor(value), torch.as_tensor(theirs))


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
@pytest.mark.parametrize("steps", [0, 3, 5], ids=["at the start", "inside", "after an epoch"])
def test_a_state_comes_back_from_the_disk_as_it_was(tmp_path, steps, optimizer) -> None:
    run, path = written(tmp_path, steps, optimizer=optimizer)
    assert sorted(os.listdir(path)) == sorted(FILES)
    assert_same_state(load_checkpoint(path).state, run.state())


def test_a_run_goes_on_from_the_disk_to_the_same_bits(tmp_path) -> None:
    settings = {"estimator": "cvd", "history_dtype": "float16", "layers": 3, "fanout": (1, 2, 1)}
    wanted = finish(trainer(**settings))
    _, path = written(tmp_path, 6, **settings)
    fresh = trainer(**settings)
    fresh.restore(load_checkpoint(path).state)
    shutil.rmtree(path)  # nothing of the run lies in the files any more
    assert_same(finish(fresh), wanted)


def test_coreutils_check_the_checksums_too(tmp_path) -> None:
    _, path = written(tmp_path)
    if shutil.which("sha256sum") is None:
        pytest.skip("there is no sha256sum here")
    checked = subprocess.run(["sha256sum", "-c", SUMS], cwd=path, capture_output=True, check=True)
    assert checked.stdout.count(b": OK") == 3


@pytest.mark.parametrize("name", FILES)
def test_any_flipped_bit_is_found_and_its_file_named(tmp_path, name) -> None:
    _, path = written(tmp_path)
    content = (path / name).read_bytes()
    draw = random.Random(name)
    for place in [0, len(content) - 1, *(draw.randrange(len(content)) for _ in range(30))]:
        damaged = bytearray(content)
        damaged[place] ^= 1 << draw.randrange(8)
        (path / name).write_bytes(damaged)
        with pytest.raises(DamagedCheckpointError, match=rf"{name}|{SUMS}") as caught:
            load_checkpoint(path)
        assert (name in str(caught.value)) or name == SUMS
    (path / name).write_bytes(content)
    load_checkpoint(path)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("keep", [None, 0, 0.5, -1])
def test_a_file_that_is_missing_or_cut_short_is_named(tmp_path, name, keep) -> None:
    _, path = written(tmp_path)
    content = (path / name).read_bytes()
    if keep is None:
        (path / name).unlink()
    else:
        (path / name).write_bytes(content[: int(keep * len(content)) if keep == 0.5 else keep])
    with refused(DamagedCheckpointError):
        load_checkpoint(path)


def test_the_older_one_is_used_where_the_newest_is_damaged(tmp_path) -> None:
    written(tmp_path, 3)
    _, newest = written(tmp_path, 7)
    told: list[str] = []
    found = newest_checkpoint(tmp_path, told.append)
    assert found is not None
    assert found.path == newest
    assert not told
    (newest / HISTORIES).unlink()
    found = newest_checkpoint(tmp_path, told.append)
    assert found is not None
    assert found.state.position.step == 3
    assert told == [f"{newest / HISTORIES} is missing; step-00000003 is used in its place"]
    shutil.rmtree(tmp_path / "step-00000003")
    with refused(DamagedCheckpointError):
        newest_checkpoint(tmp_path, told.append)
    assert newest_checkpoint(tmp_path / "none", told.append) is None


@pytest.mark.parametrize(
    "changed",
    [
        {"version": 99},
        {"format": "x"},
        {"position": {"a": 1}},
        {"histories": ["9.h.values"]},
        {"model": {"tensor": "elsewhere"}},
        {"optimizer": {"code": ["os.system"]}},
        {"progress": []},
    ],
)
def test_contents_that_make_no_sense_are_refused_though_their_checksum_is_right(
    tmp_path, changed
) -> None:
    _, path = written(tmp_path)
    state = json.loads((path / STATE).read_text()) | changed
    (path / STATE).write_text(json.dumps(state))
    sums = (path / SUMS).read_text().splitlines(keepends=True)
    digest = module.hashlib.sha256((path / STATE).read_bytes()).hexdigest()
    (path / SUMS).write_text("".join([*sums[:2], f"{digest}  {STATE}\n"]))
    with refused(DamagedCheckpointError):
        load_checkpoint(path)


@pytest.mark.parametrize("fails_at", range(4))
def test_a_full_disk_leaves_the_last_checkpoint_and_nothing_half_written(
    tmp_path, monkeypatch, fails_at
) -> None:
    run, first = written(tmp_path)
    run.advance()
    flush, calls = os.fsync, []

    def full(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) == fails_at + 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        flush(descriptor)

    monkeypatch.setattr(writing.os, "fsync", full)
    with refused(DiskFullError):
        save_checkpoint(tmp_path, run.state(copied=False), identity(run))
    monkeypatch.undo()
    assert os.listdir(tmp_path) == [first.name]
    load_checkpoint(first)


def test_names_that_are_no_checkpoints_are_left_alone(tmp_path) -> None:
    for name in ("step-1", "step-abcdefgh", ".step-00000009.x.partial", "notes"):
        (tmp_path / name).mkdir()
    _, path = written(tmp_path, 4)
    assert checkpoints_in(tmp_path) == [path]


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_the_disk_cannot_read_is_one_that_is_damaged(
    tmp_path, monkeypatch, name
) -> None:
    written(tmp_path, 3)
    _, newest = written(tmp_path, 7)
    plain = open

    def bad_sector(file, *mode, **named):
        if Path(file) == newest / name:
            raise OSError(errno.EIO, "Input/output error")
        return plain(file, *mode, **named)

    monkeypatch.setattr("builtins.open", bad_sector)
    told: list[str] = []
    found = newest_checkpoint(tmp_path, told.append)
    assert found is not None
    assert found.state.position.step == 3
    assert told == [
        f"{newest / name} cannot be read: Input/output error; step-00000003 is used in its place"
    ]


def test_a_file_in_place_of_a_checkpoint_is_one_that_is_damaged(tmp_path) -> None:
    written(tmp_path, 3)
    (tmp_path / "step-00000007").write_text("")
    told: list[str] = []
    found = newest_checkpoint(tmp_path, told.append)
    assert found is not None
    assert found.state.position.step == 3
    assert "cannot be read: Not a directory" in told[0]
