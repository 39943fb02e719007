"""Calibration of a trained model on validation nodes.

All validation nodes fit the temperature, by which outputs are divided, and for two classes the
threshold; `cross_fitting.py` says when they are used. The strangeness of the same nodes' labels
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
from vrgcn.inference.cross_fitting import choose_cut, choose_temperature, deal_folds
from vrgcn.inference.stage import RowStage
from vrgcn.tasks.regions import Region, limit_of
from vrgcn.tasks.task import Task

if TYPE_CHECKING:
    from vrgcn.inference.saved import SavedModel

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
    found = Calibration(temperature, threshold, len(nodes), scores)
    if task.several:
        return found
    # Divided and multiplied again as predictions are: rounding must not tell equal nodes apart.
    scores = task.strangeness(found.undone(found.outputs(outputs)), labels)
    return replace(found, scores=scores.sort().values)


def _sigmoid(number: float) -> float:
    return float(torch.tensor(number, dtype=torch.float64).sigmoid())
