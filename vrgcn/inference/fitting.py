"""Baselines as saved models."""

from __future__ import annotations

from vrgcn.baselines import Recipe
from vrgcn.baselines.problem import Problem
from vrgcn.graph.scaling import TrainedOn, note_trained_on
from vrgcn.inference.choose_smoothing import smoothed
from vrgcn.inference.saved import SavedModel


def fit_recipe(recipe: Recipe, problem: Problem) -> SavedModel:
    """Fit a baseline, corrected and smoothed if its recipe says so. A model that another recipe has
    fitted to the same problem is not fitted again."""
    model = problem.once(("fitted", recipe.fit), lambda: recipe.fit(problem).eval())
    note_trained_on(model, TrainedOn.of(problem.graph))
    saved = SavedModel.of(model)
    return smoothed(saved, problem, always=True) if recipe.smooth else saved
