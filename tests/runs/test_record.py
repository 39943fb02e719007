"""A run that resumes does not lose the model that it has, and says where it begins."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import vrgcn
from tests.cli.conftest import small_graph
from vrgcn import TrainConfig, fit
from vrgcn.models.models import GraphSAGE
from vrgcn.runs.checkpoint import checkpoints_in
from vrgcn.runs.folder import BETTER_MODEL
from vrgcn.runs.record import FormerModel, former_model
from vrgcn.training.state import Epoch

SETTINGS = {"epochs": 3, "hidden": 4, "estimator": "exact", "checkpoint_every": "0"}


class KilledError(Exception):
    """Ends a run without a checkpoint, as a kill does."""


def cut(folder: Path, scored: float | None = None) -> bytes:
    """A run that ends in its third epoch without a checkpoint; its best model.

    scored: of the second epoch, in place of its validation score
    """

    def kill(point: Epoch) -> None:
        if point.epoch == 3:
            raise KilledError

    with pytest.raises(KilledError):
        vrgcn.train(small_graph(), out=folder, on_epoch=kill, **SETTINGS)
    assert not checkpoints_in(folder / "checkpoints")
    if scored is not None:
        lines = (folder / "metrics.jsonl").read_text().splitlines()
        lines[1] = json.dumps(json.loads(lines[1]) | {"val": scored})
        (folder / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    return (folder / "model.safetensors").read_bytes()


def test_a_run_without_a_checkpoint_says_that_it_begins_again_and_ends_in_the_same_bits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = vrgcn.train(small_graph(), out=tmp_path / "whole", **SETTINGS)
    cut(tmp_path / "run")
    run = vrgcn.train(small_graph(), out=tmp_path / "run", resume=True)
    said = capsys.readouterr().out
    assert f"{tmp_path / 'run'} has no checkpoint: training begins again at epoch 1" in said
    models = [(each.folder / "model.safetensors").read_bytes() for each in (whole, run)]
    assert models[0] == models[1]
    assert not (run.folder / BETTER_MODEL).exists()


def test_a_better_model_stays_while_training_begins_again_and_after_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = cut(tmp_path / "run", scored=2.0)  # no later epoch is as good
    model = tmp_path / "run" / "model.safetensors"
    during: list[bytes] = []
    run = vrgcn.train(
        small_graph(),
        out=tmp_path / "run",
        resume=True,
        on_epoch=lambda _: during.append(model.read_bytes()),
    )
    assert during == [before] * 3
    assert (run.folder / BETTER_MODEL).read_bytes() == before
    assert model.read_bytes() != before
    said = capsys.readouterr().out
    assert "its model, of epoch 2 (validation score 2), stays until one is as good" in said
    assert f"is kept as {run.folder / BETTER_MODEL}" in said
    again = vrgcn.train(small_graph(), out=run.folder, overwrite=True, **SETTINGS)
    assert not (again.folder / BETTER_MODEL).exists()


@pytest.mark.parametrize("every", ["auto", "1h", "2"])
def test_the_first_checkpoint_comes_after_the_first_epoch(tmp_path: Path, every: str) -> None:
    there: list[int] = []
    config = TrainConfig(epochs=2, batch_size=30, estimator="exact", checkpoint_every=every)
    look: Callable[..., None] = lambda *_: there.append(len(checkpoints_in(tmp_path)))  # noqa: E731
    fit(GraphSAGE(8, 4, 3), small_graph(), config, checkpoints=tmp_path, on_step=look)
    assert there == [0, 0, 1, 1]


def test_of_models_without_scores_the_one_of_more_epochs_stays(tmp_path: Path) -> None:
    def better(one: float, other: float) -> bool:
        return one < other

    (tmp_path / "model.safetensors").touch()
    lines = [{"epoch": 1, "val": 0.5}, {"epoch": 2, "val": 0.7}]
    (tmp_path / "metrics.jsonl").write_text("\n".join(map(json.dumps, lines)) + '\n{"epo')
    assert former_model(tmp_path, better, scored=True) == FormerModel(1, 0.5, better)
    last = former_model(tmp_path, better, scored=False)
    assert last == FormerModel(2, None, better)
    assert [last.beats(epoch, None) for epoch in (1, 2, 3)] == [True, False, False]
    (tmp_path / "model.safetensors").unlink()
    assert former_model(tmp_path, better, scored=True) is None
