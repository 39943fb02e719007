"""Metrics by name: each against a computation by hand, and refused where it means nothing."""

from __future__ import annotations

import math

import pytest
import torch

from tests.messages import refused
from vrgcn.tasks import TASKS, find_task
from vrgcn.tasks.metrics import METRICS, class_scores
from vrgcn.training.objective import score, score_name

# One class per node: predicted 0, 1, 0, 2, 2 for the labels 0, 1, 1, 2, 0.
ONE = torch.tensor(
    [[2.0, 1.0, 0.0], [0.0, 3.0, 1.0], [1.0, 0.5, 0.0], [0.0, 0.0, 4.0], [0.0, 1.0, 2.0]]
)
CLASSES = torch.tensor([0, 1, 1, 2, 0])
# Several: predicted (1 0) (1 1) (0 1) (0 0) for (1 0) (0 1) (1 1) (0 0).
SEVERAL = torch.tensor([[2.0, -1.0], [0.5, 3.0], [-1.0, 1.0], [-2.0, -2.0]])
MEMBERS = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0]])
NUMBERS = torch.tensor([1.0, 2.0, 4.0, 9.0], dtype=torch.float64)
GUESSES = torch.tensor([[2.0], [2.0], [1.0], [8.0]])  # errors 1, 0, -3, -1


def value(name: str, outputs: torch.Tensor, labels: torch.Tensor) -> float:
    return METRICS[name].compute(outputs, labels)


def test_scores_of_one_class_by_hand():
    assert value("accuracy", ONE, CLASSES) == pytest.approx(3 / 5)
    assert value("micro-f1", ONE, CLASSES) == pytest.approx(3 / 5)
    # Hits 1, 1, 1; support 2, 2, 1; predicted 2, 1, 2: F1 = 2 hits / (support + predicted).
    assert value("macro-f1", ONE, CLASSES) == pytest.approx((2 / 4 + 2 / 3 + 2 / 3) / 3)


def test_scores_of_several_classes_by_hand():
    # Hits 3 of 4 predicted and 4 present; by class 1 of (2, 2) and 2 of (2, 2).
    assert value("micro-f1", SEVERAL, MEMBERS) == pytest.approx(2 * 3 / 8)
    assert value("macro-f1", SEVERAL, MEMBERS) == pytest.approx((2 / 4 + 4 / 4) / 2)
    assert value("micro-f1", -torch.ones(2, 2), torch.zeros(2, 2)) == 0.0


def test_scores_of_numbers_by_hand():
    assert value("rmse", GUESSES, NUMBERS) == pytest.approx(math.sqrt((1 + 0 + 9 + 1) / 4))
    assert value("mae", GUESSES, NUMBERS) == pytest.approx((1 + 0 + 3 + 1) / 4)
    # The mean is 4: spread 9 + 4 + 0 + 25.
    assert value("r2", GUESSES, NUMBERS) == pytest.approx(1 - 11 / 38)
    assert value("r2", torch.full((4, 1), 4.0), NUMBERS) == 0.0
    assert math.isnan(value("r2", GUESSES, torch.full((4,), 7.0)))


def test_errors_keep_what_is_small_beside_the_numbers():
    seconds = torch.tensor([1.7e9, 1.7e9 + 1], dtype=torch.float64)
    assert value("mae", seconds[:, None] + 0.25, seconds) == pytest.approx(0.25)


def pairs_won(scores: list[float], members: list[bool]) -> float:
    """The definition, pair by pair."""
    inside = [s for s, m in zip(scores, members, strict=True) if m]
    outside = [s for s, m in zip(scores, members, strict=True) if not m]
    won = [(a > b) + 0.5 * (a == b) for a in inside for b in outside]
    return sum(won) / len(won)


def test_roc_auc_of_two_classes_with_ties_by_hand():
    # Class 1 is given 0, 1, 1, 2 more than class 0. Pairs: 1 > 0, 1 = 1, 2 > 0, 2 > 1.
    outputs = torch.tensor([[0.0, 0.0], [0.0, 1.0], [0.0, 1.0], [5.0, 7.0]])
    labels = torch.tensor([0, 0, 1, 1])
    assert value("roc-auc", outputs, labels) == pytest.approx(3.5 / 4)
    assert value("roc-auc", outputs[:, [1, 0]], 1 - labels) == pytest.approx(3.5 / 4)
    assert value("roc-auc", torch.zeros(4, 2), labels) == 0.5


def test_roc_auc_of_more_classes_is_the_mean_of_each_against_the_rest():
    generator = torch.Generator().manual_seed(0)
    outputs = torch.randn(40, 4, generator=generator).round(decimals=1)
    labels = torch.randint(3, (40,), generator=generator)  # no node is of class 3
    shares = outputs.double().softmax(1)
    expected = [pairs_won(shares[:, c].tolist(), (labels == c).tolist()) for c in range(3)]
    assert value("roc-auc", outputs, labels) == pytest.approx(sum(expected) / 3)


def test_roc_auc_of_several_classes_leaves_out_those_that_all_have_or_none():
    generator = torch.Generator().manual_seed(1)
    outputs = torch.randn(30, 4, generator=generator).round(decimals=1)
    labels = (torch.rand(30, 4, generator=generator) < 0.4).float()
    labels[:, 1], labels[:, 2] = 0, 1
    expected = [pairs_won(outputs[:, c].tolist(), (labels[:, c] > 0).tolist()) for c in (0, 3)]
    assert value("roc-auc", outputs, labels) == pytest.approx(sum(expected) / 2)
    assert math.isnan(value("roc-auc", outputs, torch.ones(30, 4)))


def test_each_metric_knows_which_way_is_up():
    assert [name for name, metric in METRICS.items() if metric.error] == ["rmse", "mae"]
    assert METRICS["rmse"].better(1.0, 2.0)
    assert not METRICS["rmse"].better(2.0, 2.0)
    assert METRICS["r2"].better(2.0, 1.0)
    for metric in METRICS.values():
        assert metric.better(0.0, math.nan)
        assert not metric.better(math.nan, 0.0)
        assert not metric.better(math.nan, math.nan)


def test_what_is_reported_when_nothing_is_asked_for():
    assert score(ONE, CLASSES) == pytest.approx(3 / 5)
    assert score(SEVERAL, MEMBERS) == pytest.approx(6 / 8)
    assert score(GUESSES, NUMBERS) == pytest.approx(math.sqrt(11 / 4))
    names = [score_name(labels) for labels in (CLASSES, MEMBERS, NUMBERS)]
    assert names == ["accuracy", "micro-F1", "RMSE"]
    assert [find_task(task).find_metric().title for task in TASKS] == names


@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("rmse", "classes"),
        ("accuracy", "regression"),
        ("accuracy", "multilabel"),
        ("auc", "classes"),
    ],
)  # fmt: skip
def test_a_metric_that_means_nothing_is_refused_with_those_that_do(name, task):
    with refused():
        find_task(task).find_metric(name)


def test_class_scores_are_those_of_the_confusion():
    found = class_scores(ONE, CLASSES)
    assert found.support.tolist() == [2, 2, 1]
    assert found.predicted.tolist() == [2, 1, 2]
    assert found.precision.tolist() == pytest.approx([1 / 2, 1, 1 / 2])
    assert found.recall.tolist() == pytest.approx([1 / 2, 1 / 2, 1])
