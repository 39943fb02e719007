"""The study of a training run's way counts files that are called, not those that are imported."""

from __future__ import annotations

from lab.studies.train_path import FORMULA, FORWARD, traced


def test_the_way_of_a_training_run_is_counted() -> None:
    seen = traced()
    assert {"training/trainer.py", "engine/formulas.py", "cli/train.py"} <= seen.files
    assert "serve/app.py" not in seen.files
    assert 5 < seen.frames[FORWARD] < 30
    assert 5 < seen.frames[FORMULA] < 30
