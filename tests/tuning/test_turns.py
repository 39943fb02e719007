"""Whose turn it is: candidates of `vrgcn train`, the portfolio, drawn settings, paused trials."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.cli.conftest import small_graph
from vrgcn import TrainConfig, load_model, tune
from vrgcn.models.config import ModelConfig
from vrgcn.runs.candidates import candidates
from vrgcn.runs.settings import USUAL_MODEL, USUAL_TRAIN
from vrgcn.tuning import study as studies
from vrgcn.tuning.finishing import TuneResult
from vrgcn.tuning.halving import Course, Halving

pytest.importorskip("optuna")

GRAPH = small_graph()
CONFIG = TrainConfig(epochs=6, batch_size=32, learning_rate=0.002, seed=2)


def search(folder: Path, trials: int, **given) -> TuneResult:
    model = ModelConfig(hidden=8)
    return tune(GRAPH, model, CONFIG, folder=folder, trials=trials, baselines=(), **given)


def test_trials_begin_with_what_train_compares_in_its_own_settings(tmp_path: Path) -> None:
    graph = small_graph(220)  # so many validation nodes that models are compared
    untested = graph.with_splits({"train": graph.train, "val": graph.val})
    wanted = candidates(USUAL_MODEL, replace(USUAL_TRAIN, seed=3), untested)
    assert len(wanted) == 3
    found = tune(
        graph,
        config=replace(USUAL_TRAIN, seed=3),
        trials=3,
        baselines=(),
        folder=tmp_path,
        search=("layers", "dropout"),  # others are those of the candidates nevertheless
    )
    for trial, candidate in zip(found.trials, wanted, strict=True):
        config = tmp_path / "trials" / trial.folder / "config.toml"
        text = config.read_text()
        for name in ("model", "hidden", "layers", "learned_rows"):
            value = getattr(candidate.model, name)
            assert f"{name} = {json.dumps(value)}\n" in text
        assert f"learning_rate = {candidate.train.learning_rate}\n" in text
    assert found.best.val >= found.trials[0].val
    assert found.trials[0].state == "complete"


def test_from_the_sixth_trial_on_settings_are_drawn_and_taken_from_the_portfolio_in_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[int] = []
    draw = studies.drawn_values

    def noted(study, seed, of):
        drawn.append(len(study.get_trials()))
        return draw(study, seed, of)

    monkeypatch.setattr("vrgcn.tuning.turns.drawn_values", noted)
    found = search(tmp_path, 9, search=("learning_rate", "dropout", "layers"))
    assert drawn == [5, 7]
    assert len({tuple(trial.values.items()) for trial in found.trials}) == 9


def test_a_paused_trial_that_is_resumed_ends_in_the_bits_of_an_unbroken_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The third trial is paused at its first rung, and promoted after the next two."""
    unbroken = search(tmp_path / "unbroken", 3)
    assert unbroken.trials[2].state == "complete"
    continues, judged = Halving.continues, []

    def behind(self: Halving, own: Course, others: list[Course]) -> bool:
        judged.append((own.number, len(others)))
        if own.number == 2:
            return len(others) >= 4
        return own.number == 0

    monkeypatch.setattr(Halving, "continues", behind)
    found = search(tmp_path / "paused", 5)
    assert (2, 2) in judged
    assert [trial.state for trial in found.trials] == [
        "complete", "paused", "complete", "paused", "paused",
    ]  # fmt: skip
    monkeypatch.setattr(Halving, "continues", continues)
    one, other = (tmp_path / name / "trials" / "trial-002" for name in ("unbroken", "paused"))
    curves = [
        [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        for run in (one, other)
    ]
    kept = ("epoch", "loss", "val")
    assert [[point[k] for k in kept] for point in curves[0]] == [
        [point[k] for k in kept] for point in curves[1]
    ]
    states = [load_model(run).model.state_dict() for run in (one, other)]
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    assert not (other / "checkpoints").exists()
    assert (tmp_path / "paused" / "trials" / "trial-003" / "checkpoints").exists()
