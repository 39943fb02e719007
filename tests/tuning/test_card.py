"""A search and everything that it keeps have a card; only what scored the test has a test score."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runs.test_fit import graph
from vrgcn import ModelConfig, TrainConfig, tune

pytest.importorskip("optuna")


def test_every_model_of_a_search_has_a_card_and_trials_no_test_score(tmp_path: Path) -> None:
    home = tmp_path / "search"
    found = tune(
        graph(),
        ModelConfig(hidden=8),
        TrainConfig(epochs=2),
        trials=2,
        baselines=("linear", "labels"),
        folder=home,
        on_note=lambda _: None,
    )
    cards = {str(p.parent.relative_to(home)): p.read_text() for p in home.rglob("README.md")}
    fitted = {"baselines/linear", "baselines/labels", "trials/trial-000", "trials/trial-001"}
    assert cards.keys() == {".", "best", "average", *fitted}
    for name in fitted:
        assert "| test | not scored |" in cards[name], name
    assert found.average_result is not None
    kept = {"best": found.result, "average": found.average_result}
    for name, scores in kept.items():
        assert f"| test | {scores.test:.4f} |" in cards[name]
        assert f"| validation | {scores.val:.4f} ± {scores.error:.4f} |" in cards[name]
        assert f"| [{name}]({name}/README.md) | {scores.val:.4f} ± " in cards["."]
    assert "[its card](../README.md)" in cards["average"]
    assert "[its card](../../README.md)" in cards["trials/trial-000"]
    assert "| member of the average | weight |" in cards["average"]
    assert "baseline `linear`, Logistic with " in cards["baselines/linear"]
