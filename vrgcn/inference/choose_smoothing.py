"""The choice of a `Smoothing` on the validation nodes, from training labels only."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from vrgcn.baselines.problem import Problem
from vrgcn.inference.predict import predict
from vrgcn.inference.saved import SavedModel
from vrgcn.inference.smoothing import STEPS, Smoothing, Spreading, corrected, outputs_of

# (correct, smooth, autoscale) that are tried, in this order; an earlier one wins a tie.
_ALL = (
    *((0.0, smooth, False) for smooth in (0.5, 0.9)),
    *((a, b, scaled) for a in (0.5, 0.9) for scaled in (True, False) for b in (0.0, 0.5, 0.9)),
)
_FEW = ((0.0, 0.5, False), (0.9, 0.0, True), (0.9, 0.0, False))
_WORK = 1e10  # multiplications of the choice at most: some seconds of one core
_Tried = tuple[float, float, bool]


@dataclass(frozen=True)
class ChosenSmoothing:
    """smoothing: the best; None if the model without it is better, or if the graph is too large
    val: validation score with it; alone: of the model alone
    reason: why nothing was tried; None if something was
    """

    smoothing: Smoothing | None
    val: float
    alone: float
    reason: str | None = None


def choose_smoothing(
    saved: SavedModel, problem: Problem, *, always: bool = False
) -> ChosenSmoothing:
    """Choose how a trained model's outputs are corrected and smoothed.

    saved: a chain of any stages; a smoothing that it has, and what follows, is left out
    always: choose the best smoothing even if the model alone is better, however long it takes
    """
    graph, task = problem.graph, problem.task
    alone = saved.before(Smoothing)
    outputs = predict(alone, graph, kind="all")
    score = problem.score(outputs[graph.val])
    if graph.kinds.named:
        return ChosenSmoothing(None, score, score, "labels spread between nodes of one kind")
    grid = _ALL if always else _affordable(problem)
    if not grid:
        reason = "the graph is too large to try it in some seconds"
        return ChosenSmoothing(None, score, score, reason)
    labels = task.columns_of(problem.labels, graph.num_classes).double()
    shares = task.shares(outputs)
    centre = 0.0
    if not task.has_classes:  # as labels are, not as `columns_of` scales them
        labels = problem.labels.double()[:, None]
        centre = float(labels.mean())
    shares, labels = (shares - centre).to(graph.dtype), (labels - centre).to(graph.dtype)
    errors = labels - shares[graph.train]
    size = float(errors.abs().sum(1).mean())
    tries = _Tries(problem, shares, errors, labels, centre, size)
    best: tuple[float, _Tried] | None = None
    for tried in grid:
        val = tries.score(*tried)
        if best is None or problem.better(val, best[0]):
            best = val, tried
        if problem.over():
            break
    assert best is not None
    if not always and not problem.better(best[0], score):
        return ChosenSmoothing(None, score, score)
    (correct, smooth, autoscale), nodes = best[1], graph.names.node_ids(graph.train.numpy())
    return ChosenSmoothing(
        Smoothing(correct, smooth, autoscale, size, centre, errors, labels, nodes), best[0], score
    )


def smoothed(saved: SavedModel, problem: Problem, *, always: bool = False) -> SavedModel:
    """The model with the smoothing that `choose_smoothing` chooses; without one if it has none."""
    chosen = choose_smoothing(saved, problem, always=always).smoothing
    alone = saved.before(Smoothing)
    return alone if chosen is None else alone.then(chosen)


class _Tries:
    """Scores of smoothings of one model's shares; errors spread equally far are spread once."""

    def __init__(
        self,
        problem: Problem,
        shares: Tensor,
        errors: Tensor,
        labels: Tensor,
        centre: float,
        size: float,
    ) -> None:
        self.problem, self.shares, self.labels = problem, shares, labels
        self.centre, self.size = centre, size
        self.spreading = Spreading(problem.graph)
        self.errors = torch.zeros_like(shares)
        self.errors[problem.graph.train] = errors
        self.known: tuple[float, Tensor] = (0.0, self.errors)

    def score(self, correct: float, smooth: float, autoscale: bool) -> float:
        graph = self.problem.graph
        if self.known[0] != correct:
            self.known = correct, self.spreading.spread(self.errors, correct, "correct")
        first = corrected(self.shares, self.known[1], self.size if autoscale else None)
        first[graph.train] = self.labels
        smoothed_shares = self.spreading.spread(first, smooth, "smooth")[graph.val]
        return self.problem.score(outputs_of(self.problem.task, smoothed_shares, self.centre))


def _affordable(problem: Problem) -> tuple[_Tried, ...]:
    """The largest grid whose products with P are counted to be few enough."""
    graph = problem.graph
    once = STEPS * problem.outputs * (graph.num_edges + graph.num_nodes)
    for grid in (_ALL, _FEW):
        spreads = len({a for a, _, _ in grid if a > 0}) + sum(b > 0 for _, b, _ in grid)
        if spreads * once <= _WORK:
            return grid
    return ()
