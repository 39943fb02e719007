"""What is infinite or not a number is found, wherever it is."""

from __future__ import annotations

import pytest
import torch

from tests.training.test_state import advance, trainer
from vrgcn.engine.batch import Position
from vrgcn.training.divergence import all_finite, diverged


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan")])
@pytest.mark.parametrize("part", ["model", "optimizer", "histories"])
def test_one_number_anywhere_is_enough(
    part: str, value: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vrgcn.training.divergence.BLOCK", 50)  # several blocks a table
    run = trainer(estimator="cv", history_dtype="float16")
    advance(run, 3)
    state = run.state()
    assert all_finite(state)
    if part == "optimizer":
        tensor = state.optimizer["state"][0]["exp_avg"]
    else:
        tensors = getattr(state, part).values()
        tensor = [t for t in tensors if t.is_floating_point()][-1]
    tensor.view(-1)[-1] = value
    assert not all_finite(state)


def test_numbers_whose_sum_is_infinite_are_finite_all_the_same() -> None:
    run = trainer(estimator="cv")
    advance(run, 1)
    state = run.state()
    next(iter(state.model.values())).fill_(torch.finfo(torch.float32).max)
    assert all_finite(state)


def test_the_error_says_what_where_and_what_to_do() -> None:
    error = diverged("the training loss became nan", Position(3, 5, 25), 0.04)
    assert error.what == "the training loss became nan at epoch 3, step 5"
    assert "lower the learning rate (now 0.04)" in str(error)
