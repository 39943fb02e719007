"""A run's curve as TensorBoard reads it."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.messages import refused
from tests.runs.test_checkpointing import train
from vrgcn.training.tensorboard import TensorBoardLog


def events(folder: Path) -> dict[str, dict[int, float]]:
    """Return the value at each epoch, by name."""
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    found = accumulator.EventAccumulator(str(folder)).Reload()
    return {
        name: {event.step: event.value for event in found.Scalars(name)}
        for name in found.Tags()["scalars"]
    }


def test_each_number_of_an_epoch_is_a_scalar(tmp_path: Path) -> None:
    with TensorBoardLog(tmp_path) as log:
        result = train(epochs=3, on={"on_epoch": log.epoch})
    found = events(tmp_path / "tensorboard")
    for name in ("loss", "val", "age", "seconds"):
        wanted = {p.epoch: pytest.approx(p.as_dict()[name], rel=1e-5) for p in result.curve}
        assert found[name] == wanted
    assert "epoch" not in found
    assert "gradient_noise" not in found  # was not measured


def test_an_epoch_is_in_the_file_before_the_next_begins(tmp_path: Path) -> None:
    log = TensorBoardLog(tmp_path)
    for point in train(epochs=3).curve:
        log.epoch(point)
        assert list(events(tmp_path / "tensorboard")["seconds"])[-1] == point.epoch
    log.close()


def test_what_came_after_a_checkpoint_is_forgotten_with_it(tmp_path: Path) -> None:
    with TensorBoardLog(tmp_path) as log:
        result = train(epochs=4, on={"on_epoch": log.epoch})
        log.restore(result.curve[:2])
        log.epoch(replace(result.curve[3], epoch=3))
    assert list(events(tmp_path / "tensorboard")["loss"]) == [1, 2, 3]


def test_without_tensorboard_the_extra_is_named(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with refused():
        TensorBoardLog(tmp_path)
