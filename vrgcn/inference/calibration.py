"""Calibration of a trained model on validation nodes.

The validation nodes are dealt into two halves that do not depend on their labels. The first fits
the temperature, by which outputs are divided, and for two classes the threshold. The second has the
strangeness of its labels recorded, which limits prediction sets and intervals (`tasks/regions.py`).
No other node's label is read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from vrgcn.files.kinds import COUNT, Kind, or_null
from vrgcn.tasks.regions import limit_of
from vrgcn.tasks.reliability import brier
from vrgcn.tasks.task import Task

ENOUGH = 200  # validation nodes from which a model is calibrated unasked
_LARGEST = 20.0  # temperature; 1 / _LARGEST the smallest
_ROUNDS, _TRIED = 4, 20
_SCORES = "calibration.scores"


@dataclass(frozen=True, eq=False)
class Calibration:
    """How a model's outputs become probabilities, sets and intervals.

    temperature: number that outputs for classes are divided by
    threshold: probability of the second of two classes from which F1 is best; None elsewhere
    fitted: nodes that temperature and threshold were fitted on
    scores: (other nodes,) float64, ascending: strangeness of their labels, outputs divided by the
        temperature; empty if the task has no prediction sets
    """

    temperature: float
    threshold: float | None
    fitted: int
    scores: Tensor

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
    def settings(self) -> dict[str, Any]:
        """The entries that a file describes it by."""
        return {name: getattr(self, name) for name in self.kinds}

    @property
    def tensors(self) -> dict[str, Tensor]:
        """The tensors that a file keeps."""
        return {_SCORES: self.scores}

    @staticmethod
    def of_file(path: Path, settings: Mapping[str, Any], tensors: dict[str, Tensor]) -> Calibration:
        """Build from the entries and the tensors of a file; raise if they do not agree."""
        scores = tensors.get(_SCORES)
        good = scores is not None and scores.dim() == 1 and scores.dtype == torch.float64
        if scores is None or not good or (scores.diff() < 0).any():
            raise ValueError(f"{path}: lacks the ascending {_SCORES} of its calibration")
        return Calibration(**settings, scores=scores)

    def outputs(self, outputs: Tensor) -> Tensor:
        """A model's outputs (nodes, width), divided by the temperature."""
        return outputs if self.temperature == 1 else outputs / self.temperature

    def limit(self, coverage: float) -> float:
        """The limit of strangeness for a promised coverage."""
        return limit_of(self.scores, coverage)


def is_calibration(tensor: str) -> bool:
    """True if a tensor of a file belongs to a calibration, by its name."""
    return tensor == _SCORES


def halves(nodes: Tensor) -> tuple[Tensor, Tensor]:
    """Validation nodes, dealt at random: to fit on, and to limit sets by. The same nodes are always
    dealt in the same way."""
    order = torch.randperm(len(nodes), generator=torch.Generator().manual_seed(0))
    dealt = nodes.sort().values[order]
    middle = (len(nodes) + 1) // 2
    return dealt[:middle].sort().values, dealt[middle:].sort().values


def calibrate(task: Task, outputs: Tensor, labels: Tensor, nodes: Tensor) -> Calibration:
    """Calibrate a model on validation nodes.

    outputs, labels: of all nodes of the graph; those of other nodes are not read
    """
    fitting, limiting = halves(nodes)
    temperature, threshold = 1.0, None
    if task.has_classes:
        temperature = fit_temperature(task, outputs[fitting], labels[fitting])
        if not task.several and outputs.shape[1] == 2:
            chances = task.probabilities(outputs[fitting].double() / temperature)[:, 1]
            threshold = best_threshold(chances, labels[fitting] == 1)
    scores = torch.empty(0, dtype=torch.float64)
    if not task.several:
        scores = task.strangeness(outputs[limiting].double() / temperature, labels[limiting])
    return Calibration(temperature, threshold, len(fitting), scores.sort().values)


def fit_temperature(task: Task, outputs: Tensor, labels: Tensor) -> float:
    """The temperature with the smallest Brier score of outputs / temperature, to 4 digits.

    Not the smallest log loss: outputs that are corrected and smoothed have probabilities of almost
    0, and the logarithms of a few of these would decide.
    """
    outputs = outputs.double()

    def score(place: float) -> float:
        return brier(task.probabilities(outputs * math.exp(-place)), labels)

    best, width = 0.0, math.log(_LARGEST)
    for _ in range(_ROUNDS):  # each a tenth as wide around the best
        low, high = max(best - width, -math.log(_LARGEST)), min(best + width, math.log(_LARGEST))
        places = torch.linspace(low, high, 2 * _TRIED + 1, dtype=torch.float64).tolist()
        best = min(places, key=score)
        width = (high - low) / _TRIED
    return float(f"{math.exp(best):.4g}")


def best_threshold(chances: Tensor, actual: Tensor) -> float | None:
    """The probability from which on F1 of a class is best; None if no node has the class.

    chances: (nodes,) probabilities; actual: (nodes,) bool
    """
    if not actual.any():
        return None
    order = chances.argsort(descending=True, stable=True)
    hits = actual[order].cumsum(0)
    taken = torch.arange(1, len(chances) + 1)
    f1 = 2 * hits / (taken + hits[-1])
    # Nodes of one probability are on one side: only the last of them is a place to cut.
    ends = torch.cat([chances[order].diff() != 0, torch.ones(1, dtype=torch.bool)])
    place = int(torch.where(ends, f1.double(), -1).argmax())
    below = chances[order][place + 1] if place + 1 < len(order) else chances[order][place]
    return float((chances[order][place] + below) / 2)
