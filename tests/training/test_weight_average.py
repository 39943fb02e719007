"""The exponential average of the weights."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from tests.training.test_state import graph, trainer
from vrgcn import predict
from vrgcn.training.weight_average import WeightAverage


def model_of(value: float) -> nn.Module:
    model = nn.BatchNorm1d(1)
    with torch.no_grad():
        model.weight.fill_(value)
    return model


def averaged(values: list[float], steps: int) -> float:
    """The average's weight after a step to each of the values."""
    model = model_of(0.0)
    average = WeightAverage(model, steps)
    for step, value in enumerate(values, start=1):
        with torch.no_grad():
            model.weight.fill_(value)
        average.stepped(step)
    return float(average.values["weight"])


def test_the_first_updates_count_the_same() -> None:
    assert averaged([3.0, 5.0, 10.0], steps=10) == pytest.approx(6.0)


def test_later_updates_decay_by_an_epoch() -> None:
    """16 steps an epoch: one update each. The average of a long run of zeros and then ones for an
    epoch is 1 - 1/e."""
    found = averaged([0.0] * 400 + [1.0] * 16, steps=16)
    assert found == pytest.approx(1 - math.exp(-1), abs=1e-6)


def test_long_epochs_have_sixteen_updates() -> None:
    model = model_of(1.0)
    average = WeightAverage(model, 160)
    for step in range(1, 161):
        average.stepped(step)
    assert average.updates == 16
    assert average.share == pytest.approx(1 - math.exp(-1 / 16))


def test_statistics_of_batch_norm_are_averaged_and_counts_are_not() -> None:
    average = WeightAverage(model_of(1.0), 10)
    assert {"running_mean", "running_var"} <= average.values.keys()
    assert "num_batches_tracked" not in average.values


def test_the_model_has_the_average_inside_and_its_own_weights_afterwards() -> None:
    model = model_of(1.0)
    average = WeightAverage(model, 1)
    average.stepped(1)
    with torch.no_grad():
        model.weight.fill_(9.0)
    with average.applied():
        assert model.weight.item() == 1.0
    assert model.weight.item() == 9.0
    with pytest.raises(ValueError, match="inside"), average.applied():
        raise ValueError("inside")
    assert model.weight.item() == 9.0


def test_scores_and_kept_weights_are_those_of_the_average() -> None:
    run = trainer(average_weights=True, select="last", epochs=2)
    result = run.run()
    assert run.average is not None
    for name, value in run.average.values.items():
        assert torch.equal(result.weights[name], value)
    data = graph()
    assert data.labels is not None
    outputs = predict(run.model, data, data.val)
    score = float((outputs.argmax(1) == data.labels[data.val]).float().mean())
    assert result.val == pytest.approx(score)


STATISTICS = ("layers.0.norms.0.running_mean", "layers.0.norms.0.running_var")


def test_statistics_of_batch_norm_that_are_evaluated_and_kept_are_averaged_as_the_weights() -> None:
    """They are the average of the statistics after each step, written out in float64, and far from
    those of the last step."""
    run = trainer(average_weights=True, select="last", epochs=3, norm="batch", estimator="cvd")
    seen: dict[str, list[torch.Tensor]] = {name: [] for name in STATISTICS}
    while run.advance():
        for name, steps in seen.items():
            steps.append(run.model.state_dict()[name].double().clone())
    assert run.average is not None
    assert run.average.stride == 1
    data, share = graph(), run.average.share
    evaluated = run.finish()
    for name, steps in seen.items():
        wanted = torch.zeros_like(steps[0])
        for count, value in enumerate(steps, start=1):
            wanted += max(share, 1 / count) * (value - wanted)
        kept = evaluated.weights[name].double()
        torch.testing.assert_close(kept, wanted, rtol=1e-5, atol=1e-6)
        assert (steps[-1] - wanted).abs().max() > 0.01
        assert torch.equal(run.model.state_dict()[name], evaluated.weights[name])
    outputs = predict(run.model, data, data.val)
    assert data.labels is not None
    score = float((outputs.argmax(1) == data.labels[data.val]).float().mean())
    assert evaluated.val == pytest.approx(score)


@pytest.mark.parametrize("norm", ["layer", "batch"])
def test_steps_use_the_weights_themselves(norm: str) -> None:
    """The last weights and statistics of a run are the same to the bit with and without the
    average."""
    plain, other = (trainer(epochs=2, norm=norm, average_weights=on) for on in (False, True))
    for run in (plain, other):
        while run.advance():
            pass
    held = [run.model.state_dict() for run in (plain, other)]
    assert all(torch.equal(held[0][name], held[1][name]) for name in held[0])
    tables = [run.minibatches.histories.state_dict() for run in (plain, other)]
    assert all(torch.equal(tables[0][name], tables[1][name]) for name in tables[0])
