"""A quick baseline, to stand beside the score of a network.

Which baselines are quick is counted, not timed: the same graph always has the same one.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from vrgcn.baselines.logistic import fit_logistic
from vrgcn.baselines.problem import Problem
from vrgcn.baselines.relation_inputs import exact_rows
from vrgcn.graph.graph import Graph
from vrgcn.graph.sparse import num_entries
from vrgcn.tasks.metrics import LabelMetric

_WORK = 5e9  # multiplications of a fit at most: some seconds of one core
_PASSES = 200  # over the inputs that a fit makes at least, with gradients
_WORDS = {0: "a linear model of a node's own features", 2: "a linear model of two hops"}


@dataclass(frozen=True)
class Quick:
    """A baseline that was fitted, and what it scores.

    test: None where there are no test nodes
    """

    words: str
    val: float
    test: float | None
    seconds: float


def quick_baseline(graph: Graph, metric: LabelMetric) -> Quick | None:
    """Fit the linear baselines that take some seconds at most, and return the one with the better
    validation score; None where the graph is too large or has no validation nodes.

    graph: features scaled
    """
    if graph.labels is None or not len(graph.train) or not len(graph.val):
        return None
    if not graph.num_features:
        return None
    start = time.perf_counter()
    problem, best = Problem.of(graph, metric), None
    for hops, words in _WORDS.items():
        if not is_quick(graph, hops, problem.outputs):
            continue
        model = fit_logistic(problem, hops)
        scores = [
            metric.compute(exact_rows(model, graph, nodes), graph.labels[nodes])
            if len(nodes)
            else None
            for nodes in (graph.val, graph.test)
        ]
        val, test = scores
        assert val is not None
        if best is None or metric.better(val, best.val):
            best = Quick(words, val, test, time.perf_counter() - start)
    return best


def is_quick(graph: Graph, hops: int, outputs: int) -> bool:
    """Return True if a linear model of so many hops takes some seconds at most."""
    return _work(graph, hops, outputs) <= _WORK


def _work(graph: Graph, hops: int, outputs: int) -> float:
    """Multiplications of a fit."""
    entries = num_entries(graph.features)
    return _PASSES * outputs * ((hops + 1) * entries + hops * graph.num_edges)
