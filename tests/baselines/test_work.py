"""Counted seconds of baselines: which are fitted first."""

from __future__ import annotations

from tests.baselines.problems import small
from vrgcn.baselines import RECIPES
from vrgcn.baselines.problem import Problem
from vrgcn.baselines.work import cheap_first, fit_seconds


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
