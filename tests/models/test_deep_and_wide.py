"""Built-in models of sixteen layers, and of a hidden width of 1,024."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from vrgcn import Graph, TrainConfig, fit, predict
from vrgcn.models.config import ModelConfig
from vrgcn.models.models import build_model

ESTIMATORS = ("two-way", "exact", "cvd")
CLASSES, FEATURES = 3, 8


def communities(nodes: int = 240) -> Graph:
    """Three classes that edges keep to, four times in five, with features that show them faintly.
    Half of the nodes are trained on, the others validated."""
    draw = torch.Generator().manual_seed(0)
    labels = torch.arange(nodes) % CLASSES
    ends = torch.randint(nodes, (2, 12 * nodes), generator=draw)
    inside = labels[ends[0]] == labels[ends[1]]
    kept = inside | (torch.rand(ends.shape[1], generator=draw) < 0.125)
    x = torch.randn(nodes, FEATURES, generator=draw)
    x[:, :CLASSES] += torch.nn.functional.one_hot(labels, CLASSES)
    half = nodes // 2
    return Graph(
        ends[:, kept], x, labels, train=torch.arange(half), val=torch.arange(half, nodes),
        undirected=True,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("norm", "estimator"), [("layer", "two-way"), ("batch", "exact"), ("layer", "cvd")]
)
def test_sixteen_layers_learn(norm: Any, estimator: str) -> None:
    """The loss falls to half, and validation is above 80%; chance is 1/3."""
    config = ModelConfig(layers=16, hidden=16, skip=True, norm=norm)
    model = build_model(config, FEATURES, CLASSES, seed=1)
    training = TrainConfig(estimator=estimator, epochs=15, batch_size=40, select="last", seed=2)
    result = fit(model, communities(), training)
    losses = [point.loss for point in result.curve]
    assert all(math.isfinite(loss) for loss in losses)
    assert losses[-1] < losses[0] / 2
    assert result.val is not None
    assert result.val > 0.8


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_width_of_1024_takes_a_step_and_predicts(estimator: str) -> None:
    data = communities(60)
    config = ModelConfig(hidden=1024, layers=3, skip=True)
    model = build_model(config, FEATURES, CLASSES, seed=1)
    before = [weight.detach().clone() for weight in model.parameters()]
    training = TrainConfig(estimator=estimator, epochs=1, batch_size=60, select="last")
    result = fit(model, data, training)
    assert math.isfinite(result.curve[0].loss)
    after = list(model.parameters())
    assert after[0].shape == (1024, 2 * FEATURES)
    assert all(not torch.equal(a, b) for a, b in zip(before, after, strict=True))
    outputs = predict(model, data)
    assert outputs.shape == (60, CLASSES)
    assert bool(outputs.isfinite().all())
