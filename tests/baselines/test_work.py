"""Counted seconds of baselines: which are fitted first."""

from __future__ import annotations

import pytest

from tests.baselines.problems import small
from vrgcn.baselines import RECIPES
from vrgcn.baselines.problem import Problem
from vrgcn.baselines.work import FIXED, cheap_first, fit_seconds, speed


def test_every_recipe_has_seconds_and_smoothing_adds_to_its_model() -> None:
    problem = Problem.of(small())
    assert all(0 < fit_seconds(name, problem) < 10 for name in RECIPES)
    order = cheap_first(RECIPES, problem)
    assert sorted(order) == sorted(RECIPES)
    for smoothed, inner in (("smoothed", "linear-2"), ("smoothed-mlp", "mlp-2")):
        assert order.index(inner) < order.index(smoothed)


def test_more_classes_make_trees_slower() -> None:
    two, many = (Problem.of(small(classes=classes)) for classes in (2, 6))
    assert fit_seconds("trees-2", many) > 5 * fit_seconds("trees-2", two)


def test_what_took_long_for_another_reason_makes_no_other_baseline_dearer() -> None:
    """The first one's imports and first product took five seconds of .06 that were counted."""
    problem = Problem.of(small())
    first = cheap_first(("labels", "linear", "linear-2", "mlp-2"), problem)[0]
    assert speed({}, problem) == 1.0
    assert speed({first: 5.4}, problem) == 1.0


def test_a_machine_that_is_slow_for_most_of_the_counted_seconds_is_slow(monkeypatch) -> None:
    problem = Problem.of(small())
    seconds = {"labels": 0.06, "linear": 1.5, "mlp-2": 3.0}
    monkeypatch.setattr("vrgcn.baselines.work.fit_seconds", lambda name, *_: seconds[name])
    taken = {"labels": 5.4, "linear": FIXED + 3.0, "mlp-2": FIXED + 6.0}
    assert speed(taken, problem) == 2.0
    assert speed({"labels": 5.4, "mlp-2": 0.0}, problem) == 0.0  # its parts were made before


def test_a_smoothed_model_that_was_fitted_before_costs_its_smoothing() -> None:
    problem = Problem.of(small())
    alone, inner = fit_seconds("smoothed", problem), fit_seconds("linear-2", problem)
    assert fit_seconds("smoothed", problem, ["linear-2"]) == pytest.approx(alone - inner)
