"""Limits of prediction sets: the finite-sample quantile, and what it promises."""

from __future__ import annotations

import pyarrow as pa
import pytest
import torch

from tests.messages import refused
from vrgcn.tasks import find_task
from vrgcn.tasks.regions import joined_names, limit_of


@pytest.mark.parametrize(
    ("count", "coverage", "place"), [(9, 0.9, 9), (19, 0.9, 18), (100, 0.8, 81), (99, 0.5, 50)]
)
def test_the_limit_is_the_place_that_one_more_node_is_below_often_enough(
    count: int, coverage: float, place: int
) -> None:
    shuffled = torch.randperm(count) + 1.0
    assert limit_of(shuffled, coverage) == place


def test_exchangeable_nodes_are_covered_as_promised_and_hardly_more() -> None:
    draw = torch.Generator().manual_seed(0)
    scores = torch.rand(4000, 60, generator=draw, dtype=torch.float64)  # 59 to calibrate, 1 new
    held = [float(row[59] <= limit_of(row[:59], 0.85)) for row in scores]
    # k = ceil(60 * .85) = 51: the chance is 51 / 60 = .85; five deviations of .0056.
    assert sum(held) / len(held) == pytest.approx(51 / 60, abs=0.028)


def test_too_few_nodes_promise_nothing() -> None:
    with refused():
        limit_of(torch.rand(18), 0.95)
    limit_of(torch.rand(19), 0.95)
    for wrong in (0.0, 1.0, -0.1, 1.5):
        with refused():
            limit_of(torch.rand(50), wrong)


def test_sets_have_the_probable_classes_and_always_the_most_probable() -> None:
    task = find_task("classes")
    outputs = torch.tensor([[0.5, 0.3, 0.2], [0.9, 0.05, 0.05]], dtype=torch.float64).log()
    assert task.region(outputs, 0.75).tolist() == [[True, True, False], [True, False, False]]
    assert task.region(outputs, 0.05).tolist() == [[True, False, False], [True, False, False]]
    labels = torch.tensor([1, 1])
    assert task.covers(task.region(outputs, 0.75), labels).tolist() == [True, False]
    assert task.strangeness(outputs, labels).tolist() == pytest.approx([0.7, 0.95])


def test_intervals_reach_as_far_as_the_limit() -> None:
    task = find_task("regression")
    outputs, labels = torch.tensor([[2.0], [5.0]]), torch.tensor([2.5, 9.0])
    assert task.region(outputs, 1.5).tolist() == [[0.5, 3.5], [3.5, 6.5]]
    assert task.covers(task.region(outputs, 1.5), labels).tolist() == [True, False]
    low, high = task.region_columns([], lambda o: task.region(o, 1.5)).arrays(outputs)
    assert (low.to_pylist(), high.to_pylist()) == ([0.5, 3.5], [3.5, 6.5])


def test_several_classes_have_no_sets() -> None:
    with refused():
        find_task("multilabel").region(torch.zeros(1, 2), 0.5)


def test_a_class_with_the_separator_in_its_name_makes_lists() -> None:
    chosen = torch.tensor([[True, True], [False, True]])
    assert joined_names(chosen, pa.array(["a", "b"])).to_pylist() == ["a|b", "b"]
    assert joined_names(chosen, pa.array(["a", "b|c"])).to_pylist() == ['["a", "b|c"]', '["b|c"]']
    none = torch.tensor([[True, False], [False, False]])
    assert joined_names(none, pa.array(["", "b"])).to_pylist() == ['[""]', "[]"]
