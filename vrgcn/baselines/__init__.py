"""Baselines: simple models that are fitted at once, not trained by epochs.

A baseline is a module with `forward(x, propagate)` like any other model: it is saved, loaded and
predicted exactly as they are. Its numbers come from a fitting function, which is given a `Problem`
and may use scikit-learn or LightGBM; prediction is PyTorch alone. A new baseline is a file here
with a class derived from `Baseline`, a line in BASELINES, by which model files name it, and a line
in RECIPES, by which it is fitted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec

from vrgcn.baselines.baseline import Baseline
from vrgcn.baselines.estimator import Remembered
from vrgcn.baselines.label_propagation import LabelPropagation, fit_label_propagation
from vrgcn.baselines.link import Link, fit_link
from vrgcn.baselines.logistic import Logistic, fit_logistic
from vrgcn.baselines.perceptron import Perceptron, RelationPerceptron, fit_perceptron
from vrgcn.baselines.problem import Problem
from vrgcn.baselines.relation_linear import RelationLinear
from vrgcn.baselines.trees import RelationTrees, Trees, fit_trees
from vrgcn.graph.graph import Graph

BASELINES: dict[str, type[Baseline]] = {
    "logistic": Logistic,
    "trees": Trees,
    "perceptron": Perceptron,
    "relation-linear": RelationLinear,
    "relation-trees": RelationTrees,
    "relation-perceptron": RelationPerceptron,
    "link": Link,
    "label-propagation": LabelPropagation,
    "remembered": Remembered,
}


@dataclass(frozen=True)
class Recipe:
    """A baseline to be fitted.

    fit: returns the fitted module
    words: what it is, for the leaderboard
    packages: import names, any one of which `fit` needs; empty where it needs none
    smooth: True if its predictions are corrected and smoothed (inference/fitting.py)
    labels: True if it reads labels of neighbours, or who they are, over all relations at once
    """

    fit: Callable[[Problem], Baseline]
    words: str
    packages: tuple[str, ...] = ()
    smooth: bool = False
    labels: bool = False

    def suits(self, graph: Graph) -> bool:
        """False if it needs labels of neighbours and no edge leaves the kind with labels."""
        ends = [part.source for part in graph.relations.values()]
        return graph.target is None or graph.target in ends or not (self.labels or self.smooth)

    @property
    def available(self) -> bool:
        """True if what `fit` needs is installed."""
        return not self.packages or any(find_spec(name) is not None for name in self.packages)


_TREES = ("lightgbm", "sklearn")
_linear = partial(fit_logistic, hops=2)
_perceptron = partial(fit_perceptron, hops=2)
_trees = partial(fit_trees, hops=2)
# In the order in which they are fitted: where time is short, those that come first count. Recipes
# of one `fit` share what it returns.
RECIPES: dict[str, Recipe] = {
    "labels": Recipe(fit_label_propagation, "labels, spread along the edges", labels=True),
    "mlp-2": Recipe(_perceptron, "perceptron, of two hops"),
    "smoothed-mlp": Recipe(
        _perceptron, "perceptron of two hops, corrected and smoothed", smooth=True
    ),
    "trees-tables": Recipe(
        partial(fit_trees, hops=2, tables=True),
        "boosted trees, of two hops, links and labels",
        _TREES,
        labels=True,
    ),
    "mlp-tables": Recipe(
        partial(fit_perceptron, hops=2, tables=True),
        "perceptron, of two hops, links and labels",
        labels=True,
    ),
    "linear": Recipe(partial(fit_logistic, hops=0), "linear, of a node's own features"),
    "link": Recipe(fit_link, "linear, of who the neighbours are", labels=True),
    "trees-2": Recipe(_trees, "boosted trees, of two hops", _TREES),
    "linear-2": Recipe(_linear, "linear, of two hops"),
    "smoothed": Recipe(_linear, "linear of two hops, corrected and smoothed", smooth=True),
    "smoothed-trees": Recipe(
        _trees, "boosted trees of two hops, corrected and smoothed", _TREES, smooth=True
    ),
    "trees": Recipe(partial(fit_trees, hops=0), "boosted trees, of its own features", _TREES),
}
