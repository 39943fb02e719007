"""Infinite values and NaN are found wherever they are."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.messages import refused
from tests.training.test_state import advance, graph, trainer
from vrgcn import Graph, GraphSAGE, TrainConfig, fit
from vrgcn.engine.batch import Position
from vrgcn.training.divergence import DivergedError, diverged, spoilt


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan")])
@pytest.mark.parametrize("part", ["model", "optimizer", "histories"])
def test_one_number_anywhere_is_enough(
    part: str, value: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vrgcn.training.divergence.BLOCK", 50)  # several blocks a table
    run = trainer(estimator="cv", history_dtype="float16")
    advance(run, 3)
    state = run.state()
    assert spoilt(state) is None
    if part == "optimizer":
        tensor = state.optimizer["state"][0]["exp_avg"]
    else:
        tensors = getattr(state, part).values()
        tensor = [t for t in tensors if t.is_floating_point()][-1]
    tensor.view(-1)[-1] = value
    wanted = {"model": "weight ", "optimizer": "exp_avg of weight 0", "histories": "table "}[part]
    found = spoilt(state)
    assert found is not None
    assert found.startswith(wanted)
    assert f" (rows {len(tensor) - 1}: 1 of {len(tensor)}" in found


def test_numbers_whose_sum_is_infinite_are_finite_all_the_same() -> None:
    run = trainer(estimator="cv")
    advance(run, 1)
    state = run.state()
    next(iter(state.model.values())).fill_(torch.finfo(torch.float32).max)
    assert spoilt(state) is None


def test_the_error_says_what_where_and_what_to_do() -> None:
    error = diverged("the training loss became nan", Position(3, 5, 25), 0.04)
    assert error.what == "the training loss became nan at epoch 3, step 5"
    assert "lower the learning rate (now 0.04)" in str(error)


def last_step(rate: float, data: Graph) -> None:
    """A run of one step, after which no loss comes that would tell."""
    torch.manual_seed(0)
    config = TrainConfig(epochs=1, batch_size=99, learning_rate=rate, estimator="exact")
    fit(GraphSAGE(5, 8, 3, layer_norm=False), data, config)


def test_weights_that_the_last_step_loses_are_an_error_and_no_result() -> None:
    unscored = graph().with_splits({"train": graph().train})
    for data in (graph(), unscored):
        with refused(DivergedError):
            last_step(1e39, data)


def test_outputs_that_are_no_numbers_are_an_error_and_no_class() -> None:
    with refused(DivergedError):
        last_step(1e37, graph())


def test_a_last_step_that_lost_everything_is_rolled_back(tmp_path: Path) -> None:
    notes: list[str] = []
    config = TrainConfig(
        epochs=1, batch_size=99, optimizer="sgd", learning_rate=0.1, estimator="exact",
        on_nan="rollback",
    )  # fmt: skip
    torch.manual_seed(0)
    network = GraphSAGE(5, 8, 3)
    spoilt = []

    def spoil(*_: int) -> None:
        if not spoilt:
            spoilt.append(network)
            with torch.no_grad():
                next(network.parameters()).fill_(float("nan"))

    result = fit(
        network, graph(), config, checkpoints=tmp_path, on_step=spoil, on_note=notes.append
    )
    assert all(weight.isfinite().all() for weight in result.weights.values())
    assert len(result.curve) == 1
    assert (
        "the weights became infinite or NaN at epoch 1, step 1; back to step-00000000" in notes[0]
    )
