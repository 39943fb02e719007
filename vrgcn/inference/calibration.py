"""Calibration of a trained model on validation nodes.

All validation nodes fit the temperature, by which outputs are divided, and for two classes the
threshold. The nodes are dealt into folds, class by class, and what is fitted on all nodes is used
only if the same fit is better on held-out nodes than doing nothing: each fold is scored with the
fit of the others. The strangeness of the same nodes' labels
limits prediction sets and intervals (`tasks/regions.py`). It is measured by the outputs as they are
without the temperature, so that nothing fitted on these labels enters it: validation nodes stay
exchangeable with new ones. No other node's label is read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import torch
from torch import Tensor

from vrgcn.files.kinds import COUNT, Kind, or_null
from vrgcn.files.mistakes import InputError
from vrgcn.inference.stage import RowStage
from vrgcn.tasks.regions import Region, limit_of
from vrgcn.tasks.reliability import brier, log_losses
from vrgcn.tasks.task import Task

if TYPE_CHECKING:
    from vrgcn.inference.saved import SavedModel


FOLDS = 5
_LARGEST = 1000.0  # temperature that is tried; 1 / _LARGEST the smallest
_PLACES = 15  # between them, on a scale of logarithms, where the search begins
# The prior of log T is normal around 0: T between a half and 2 for two of three models, between a
# quarter and 4 for 95 of 100, as measured for networks. It costs half a nat at 2 and 9 at 0.05, in
# sum and not per node. So it decides only if the nodes are few, or if all of them are right: the
# log loss alone would then fall for ever.
_PRIOR = math.log(2)


def deal_folds(strata: Tensor) -> Tensor:
    """The fold of each node, (nodes,): dealt at random, equal shares of each stratum in each fold.
    The same strata are always dealt in the same way."""
    shuffled = torch.randperm(len(strata), generator=torch.Generator().manual_seed(0))
    order = shuffled[strata[shuffled].argsort(stable=True)]
    folds = torch.empty(len(strata), dtype=torch.int64)
    folds[order] = torch.arange(len(strata)) % FOLDS
    return folds


def fit_temperature(outputs: Tensor, labels: Tensor) -> float | None:
    """The temperature T with the smallest sum over the nodes of the log loss of outputs / T, plus
    (log T)² / (2 log² 2); None if it lies at the end of what is tried.

    outputs: (nodes, classes) float64
    """
    from scipy.optimize import minimize_scalar

    def cost(log: float) -> float:
        losses = log_losses(outputs * math.exp(-log), labels)
        return float(losses.sum()) + (log / _PRIOR) ** 2 / 2

    # Where outputs are tiny, the prior makes a second valley at 1: the lower one is searched.
    width = math.log(_LARGEST)
    places = torch.linspace(-width, width, _PLACES, dtype=torch.float64).tolist()
    costs = [cost(place) for place in places]
    lowest = costs.index(min(costs))
    if lowest in (0, _PLACES - 1):
        return None
    bounds = (places[lowest - 1], places[lowest + 1])
    lowest_cost = minimize_scalar(cost, bounds=bounds, method="bounded", options={"xatol": 1e-4})
    return math.exp(float(lowest_cost.x))


def held_out_temperatures(outputs: Tensor, labels: Tensor, folds: Tensor) -> Tensor | None:
    """The temperature of each node, (nodes,), fitted on the other folds; None if there is none."""
    temperatures = torch.ones(len(labels), dtype=torch.float64)
    for fold in folds.unique().tolist():
        inside = folds == fold
        temperature = fit_temperature(outputs[~inside], labels[~inside])
        if temperature is None:
            return None
        temperatures[inside] = temperature
    return temperatures


def choose_temperature(task: Task, outputs: Tensor, labels: Tensor, folds: Tensor) -> float:
    """The temperature fitted on all nodes, to 4 digits; 1 if held-out nodes do not gain by theirs.

    They gain if their mean log loss falls by more than its standard error, both as it is observed
    and as it would be if the model's own probabilities were true, and their Brier score falls too.
    If all nodes happen to be right, the observed error is nearly 0; the second knows how many could
    have been wrong. The log loss of smoothed outputs, some of whose probabilities are almost 0, can
    hang on a few nodes; the Brier score cannot.
    """
    outputs = outputs.double()
    temperature = fit_temperature(outputs, labels)
    held = held_out_temperatures(outputs, labels, folds)
    if temperature is None or held is None:
        return 1.0
    divided = outputs / held[:, None]
    gains = log_losses(outputs, labels) - log_losses(divided, labels)
    spread = max(float(gains.var()), 0.0 if task.several else _own_variance(outputs, divided))
    error = math.sqrt(spread / len(gains))
    before, after = (brier(task.probabilities(o), labels) for o in (outputs, divided))
    gained = float(gains.mean()) > error and after < before
    return float(f"{temperature:.4g}") if gained else 1.0


def _own_variance(outputs: Tensor, divided: Tensor) -> float:
    """The mean variance of a node's fall in log loss, its class drawn from softmax(outputs)."""
    own = outputs.log_softmax(1)
    falls = divided.log_softmax(1) - own
    mean = (own.exp() * falls).sum(1, keepdim=True)
    return float((own.exp() * (falls - mean).square()).sum(1).mean())


def best_cut(margins: Tensor, actual: Tensor) -> float | None:
    """The margin from which on F1 of a class is best; None if no node has the class.

    margins: (nodes,) output of the class minus that of the other; actual: (nodes,) bool
    """
    if not actual.any():
        return None
    order = margins.argsort(descending=True, stable=True)
    ranked, hits = margins[order], actual[order].cumsum(0)
    taken = torch.arange(1, len(margins) + 1)
    scores = 2 * hits.double() / (taken + hits[-1])
    # Nodes of one margin are on one side: only the last of them is a place to cut.
    ends = torch.cat([ranked.diff() != 0, torch.ones(1, dtype=torch.bool)])
    place = int(torch.where(ends, scores, -1).argmax())
    if place + 1 == len(order):
        return -math.inf
    return float((ranked[place] + ranked[place + 1]) / 2)


def median_cut(margins: Tensor, actual: Tensor, folds: Tensor) -> float:
    """The median of the best cuts without one fold each: a few nodes move it less than they move
    the best cut of all. 0, which is probability 0.5, if no node has the class."""
    left = [folds != fold for fold in folds.unique().tolist()]
    cuts = [best_cut(margins[kept], actual[kept]) for kept in left]
    known = [cut for cut in cuts if cut is not None]
    return float(torch.tensor(known, dtype=torch.float64).median()) if known else 0.0


def held_out_cuts(margins: Tensor, actual: Tensor, folds: Tensor) -> Tensor:
    """The cut of each node, (nodes,), chosen by `median_cut` on the other folds."""
    cuts = torch.zeros(len(margins), dtype=torch.float64)
    for fold in folds.unique().tolist():
        inside = folds == fold
        cuts[inside] = median_cut(margins[~inside], actual[~inside], folds[~inside])
    return cuts


def choose_cut(margins: Tensor, actual: Tensor, folds: Tensor) -> float | None:
    """The cut chosen on all nodes; None if held-out nodes do not have a better F1 by theirs than by
    0, the more probable class."""
    held = held_out_cuts(margins, actual, folds)
    if f1_score(margins >= held, actual) <= f1_score(margins > 0, actual):
        return None
    return median_cut(margins, actual, folds)


def f1_score(chosen: Tensor, actual: Tensor) -> float:
    """F1 of a class, (nodes,) bool each; 0 if it is neither chosen nor present."""
    return 2 * int((chosen & actual).sum()) / max(int(chosen.sum()) + int(actual.sum()), 1)


ENOUGH = 200  # validation nodes from which a model is calibrated unasked
NOT_BETTER = "no temperature was better than 1 on held-out validation nodes"
_SCORES = "strangeness"


@dataclass(frozen=True, eq=False)
class Calibration(RowStage):
    """How a model's outputs become probabilities, sets and intervals.

    temperature: number that outputs for classes are divided by; 1 if none is better
    threshold: probability of the second of two classes from which on it is the label; None if
        there are not two, or if none is better than the more probable class
    fitted: validation nodes, on which temperature and threshold were fitted
    scores: (the same nodes,) float64, ascending: strangeness of their labels, for outputs that are
        not divided by the temperature; empty if the task has no prediction sets
    """

    temperature: float
    threshold: float | None
    fitted: int
    scores: Tensor

    name = "calibrated"
    title = "calibration"
    words = "calibrated"
    kinds: ClassVar[Mapping[str, Kind]] = {
        "temperature": Kind(
            lambda v: type(v) in (int, float) and 0 < v < math.inf, "a number above 0"
        ),
        "threshold": or_null(
            Kind(lambda v: type(v) in (int, float) and 0 <= v <= 1, "between 0 and 1")
        ),
        "fitted": COUNT,
    }

    @property
    def tensors(self) -> dict[str, Tensor]:
        return {_SCORES: self.scores}

    @classmethod
    def of_file(
        cls,
        where: str,
        settings: Mapping[str, Any],
        tensors: dict[str, Tensor],
        before: SavedModel,
    ) -> Self:
        scores = tensors.get(_SCORES)
        good = scores is not None and scores.dim() == 1 and scores.dtype == torch.float64
        if scores is None or not good or (scores.diff() < 0).any():
            raise InputError(
                f"{where}: lacks the ascending {_SCORES} of its calibration: train the model again"
            )
        return cls(**settings, scores=scores)

    @property
    def described(self) -> tuple[str, ...]:
        return ()  # cards have a section of it

    def rows(self, outputs: Tensor, task: Task) -> Tensor:
        return self.outputs(outputs)

    def outputs(self, outputs: Tensor) -> Tensor:
        """A model's outputs (nodes, width), divided by the temperature."""
        return outputs if self.temperature == 1 else outputs / self.temperature

    def undone(self, outputs: Tensor) -> Tensor:
        """Calibrated outputs as they were before."""
        return outputs if self.temperature == 1 else outputs * self.temperature

    def limit(self, coverage: float) -> float:
        """The limit of strangeness for a promised coverage."""
        return limit_of(self.scores, coverage)

    def region(self, task: Task, coverage: float) -> Region:
        """From calibrated outputs to the sets or intervals with a promised coverage."""
        limit = self.limit(coverage)
        return lambda outputs: task.region(self.undone(outputs), limit)


def calibrate(task: Task, outputs: Tensor, labels: Tensor, nodes: Tensor) -> Calibration:
    """Calibrate a model on validation nodes.

    outputs, labels: of all nodes of the graph; those of other nodes are not read
    """
    nodes = nodes.sort().values
    outputs, labels = outputs[nodes], labels[nodes]
    temperature, threshold = 1.0, None
    if task.has_classes:
        folds = deal_folds(torch.zeros_like(nodes) if task.several else labels)
        temperature = choose_temperature(task, outputs, labels, folds)
        if not task.several and outputs.shape[1] == 2:
            margins = (outputs[:, 1] - outputs[:, 0]).double()
            cut = choose_cut(margins, labels == 1, folds)
            threshold = None if cut is None else _sigmoid(cut / temperature)
    scores = torch.empty(0, dtype=torch.float64)
    calibration = Calibration(temperature, threshold, len(nodes), scores)
    if task.several:
        return calibration
    # Divided and multiplied again as predictions are: rounding must not tell equal nodes apart.
    scores = task.strangeness(calibration.undone(calibration.outputs(outputs)), labels)
    return replace(calibration, scores=scores.sort().values)


def _sigmoid(number: float) -> float:
    return float(torch.tensor(number, dtype=torch.float64).sigmoid())
