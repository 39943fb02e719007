"""Reliability, Brier score and log loss by hand."""

from __future__ import annotations

import math

import pytest
import torch

from vrgcn.tasks.metrics import METRICS
from vrgcn.tasks.reliability import brier, log_losses, reliability

CHANCES = torch.tensor([[0.95, 0.05], [0.92, 0.08], [0.35, 0.65], [0.31, 0.69]])
LABELS = torch.tensor([0, 1, 1, 1])


def test_confidence_and_accuracy_of_each_bin() -> None:
    found = reliability(CHANCES, LABELS)
    assert found.counts.tolist() == [0] * 6 + [2, 0, 0, 2]
    assert float(found.confidence[9]) == pytest.approx(0.935)
    assert float(found.accuracy[9]) == 0.5
    assert float(found.accuracy[6]) == 1.0
    assert found.error == pytest.approx(0.5 * abs(0.935 - 0.5) + 0.5 * abs(0.67 - 1))


def test_of_several_classes_every_pair_counts() -> None:
    found = reliability(torch.tensor([[0.25, 1.0]]), torch.tensor([[1.0, 0.0]]))
    assert found.counts.tolist() == [0, 0, 1, 0, 0, 0, 0, 0, 0, 1]
    assert found.error == pytest.approx((0.75 + 1.0) / 2)


def test_brier_score_by_hand() -> None:
    by_node = [2 * 0.05**2, 2 * 0.92**2, 2 * 0.35**2, 2 * 0.31**2]
    assert brier(CHANCES, LABELS) == pytest.approx(sum(by_node) / 4)
    assert brier(torch.tensor([[0.2, 0.9]]), torch.tensor([[0.0, 1.0]])) == pytest.approx(0.05)


def test_average_precision_by_hand_and_of_ties() -> None:
    compute = METRICS["average-precision"].compute
    # By the second class's output: labels 1, 0, 1, 0 from the top.
    outputs = torch.tensor([[0.0, 4.0], [0.0, 3.0], [0.0, 2.0], [0.0, 1.0]])
    labels = torch.tensor([1, 0, 1, 0])
    assert compute(outputs, labels) == pytest.approx((1 / 1 + 2 / 3) / 2)
    assert compute(torch.zeros(4, 2), labels) == pytest.approx(0.5)  # ties: all at once
    several = torch.tensor([[4.0], [3.0], [2.0]]), torch.tensor([[0.0], [1.0], [1.0]])
    assert compute(*several) == pytest.approx((1 / 2 + 2 / 3) / 2)


def test_average_precision_is_that_of_scikit_learn() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    outputs = torch.randn(200, 2).round(decimals=1)
    labels = (torch.rand(200) < 0.2).long()
    wanted = metrics.average_precision_score(
        labels.numpy(), outputs.double().softmax(1)[:, 1].numpy()
    )
    assert METRICS["average-precision"].compute(outputs, labels) == pytest.approx(wanted, abs=1e-6)


def test_log_losses_by_hand() -> None:
    by_node = [-math.log(p) for p in (0.95, 0.08, 0.65, 0.69)]
    assert log_losses(CHANCES.log(), LABELS).tolist() == pytest.approx(by_node)
    several = log_losses(torch.tensor([[0.2, 0.9]]).logit(), torch.tensor([[0.0, 1.0]]))
    assert several.tolist() == pytest.approx([-(math.log(0.8) + math.log(0.9)) / 2])
