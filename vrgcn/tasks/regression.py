"""The task of one number per node: squared or absolute error, in units of the labels' own standard
deviation.

A network learns best when its outputs are of about size 1, and prices are not. So the model gets
the mean and standard deviation of the training labels and applies them to its outputs as the last
step: it predicts in the labels' unit, while the loss does not depend on the unit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.tasks.config import LossConfig
from vrgcn.tasks.metrics import METRICS, LabelMetric
from vrgcn.tasks.regions import IntervalColumns, Region
from vrgcn.tasks.task import Columns, Criterion, Facts, Task

_STRATA = 10
_LEAST_STRATUM = 10  # nodes: with fewer, a ratio leaves nothing to choose


class Number(Task):
    """A number per node. Labels (nodes,) numbers, float64; NaN if unknown."""

    name = "regression"
    label = "one number per node"
    has_classes = False
    drawn = "evenly over the numbers"
    by_name = True
    unknown = math.nan
    metrics = ("rmse", "mae", "r2")
    unused = ("class_weights", "label_smoothing")

    def check_settings(self, settings: LossConfig, num_classes: int) -> None:
        super().check_settings(settings, num_classes)
        if settings.loss not in ("auto", "mse", "mae"):
            raise InputError(f"{setting('loss', settings.loss)} is for pairs: choose mse or mae")

    def holds(self, labels: Tensor) -> bool:
        return labels.dim() == 1 and labels.is_floating_point()

    def check_num_classes(self, num_classes: int | None) -> None:
        if num_classes:
            raise InputError(f'num_classes is {num_classes}, and task="{self.name}" has no classes')

    def check_labels(
        self, labels: Tensor, num_classes: int | None, num_nodes: int
    ) -> tuple[Tensor, int]:
        if labels.shape != (num_nodes,):
            raise InputError(
                f"labels must be ({num_nodes},), one number per node; not {tuple(labels.shape)}"
            )
        if labels.is_complex() or labels.dtype == torch.bool:
            raise TypeError(
                f"labels of one number per node must be real numbers, not {labels.dtype}"
            )
        bad = labels.isinf()
        if bad.any():
            first = int(bad.nonzero()[0, 0])
            raise InputError(
                f"{int(bad.sum())} labels are infinite, first: node {first}; give NaN where unknown"
            )
        # Double precision: a time in seconds would be rounded to minutes in single precision.
        return labels.double(), 0

    def labelled(self, labels: Tensor, nodes: Tensor | None = None) -> Tensor:
        return ~(labels if nodes is None else labels[nodes]).isnan()

    def stored(self, num_nodes: int, num_classes: int) -> tuple[tuple[int, ...], tuple[str, ...]]:
        return (num_nodes,), ("float64",)

    def wrong(self, labels: Tensor, num_classes: int) -> tuple[Tensor, str]:
        return labels.isinf(), "a number, NaN where unknown"

    def strata(self, labels: NDArray[Any], known: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return the tenth of the nodes that each number falls into, the smallest numbers first."""
        values = labels[known]
        count = min(_STRATA, max(1, len(values) // _LEAST_STRATUM))
        strata = np.empty(len(values), np.int64)
        strata[np.argsort(values, kind="stable")] = np.arange(len(values)) * count // len(values)
        return strata

    def described(self, num_classes: int) -> str:
        return self.name

    def renumbered(self, labels: Tensor, place: Tensor, classes: int) -> Tensor:
        return labels

    def outputs(self, num_classes: int) -> int:
        return 1

    def target(self, num_classes: int) -> str:
        return self.label

    def needs(self, settings: LossConfig) -> tuple[str, ...]:
        return ("labels",)

    def columns_of(self, labels: Tensor, num_classes: int) -> Tensor:
        mean, deviation = mean_and_deviation(labels)
        return (labels.float()[:, None] - mean) / deviation

    def facts(self, labels: Tensor, num_classes: int) -> dict[str, Tensor]:
        return {"labels": torch.tensor(mean_and_deviation(labels), dtype=torch.float64)}

    def suited(self, settings: LossConfig, metric: LabelMetric) -> LossConfig:
        absolute = settings.loss == "auto" and metric == METRICS["mae"]
        return replace(settings, loss="mae") if absolute else settings

    def criterion(self, settings: LossConfig, facts: Facts) -> Criterion:
        centre, deviation = facts["labels"].tolist()
        return NumberError(centre, deviation, absolute=settings.loss == "mae")

    def compared(self, outputs: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        # PyTorch's own losses broadcast (nodes, 1) and (nodes,) to (nodes, nodes).
        return outputs[:, 0], labels.to(outputs.dtype)

    def predicted(self, outputs: Tensor) -> Tensor:
        return outputs[:, 0]

    def probabilities(self, outputs: Tensor) -> Tensor:
        raise InputError("the model predicts numbers, which have no probabilities")

    def array(self, outputs: Tensor) -> Tensor:
        return outputs[:, 0].double()

    def columns(
        self, classes: Sequence[str], top: int | None, threshold: float | None = None
    ) -> Columns:
        return PredictedNumber()

    def strangeness(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """The distance of the label from the prediction."""
        return (outputs[:, 0].double() - labels.double()).abs()

    def region(self, outputs: Tensor, limit: float) -> Tensor:
        middle = outputs[:, 0].double()
        return torch.stack([middle - limit, middle + limit], dim=1)

    def covers(self, regions: Tensor, labels: Tensor) -> Tensor:
        numbers = labels.double()
        return (regions[:, 0] <= numbers) & (numbers <= regions[:, 1])

    def region_columns(self, classes: Sequence[str], region: Region) -> Columns:
        return IntervalColumns(region)

    def check_top(self, top: int | None, classes: int) -> None:
        if top is not None:
            raise InputError(
                f"{setting('top')}: the model predicts numbers, which have no classes to choose "
                "from"
            )


class PredictedNumber:
    """The column `prediction`."""

    def __init__(self) -> None:
        self.fields = [("prediction", pa.float64())]

    def arrays(self, outputs: Tensor) -> list[pa.Array]:
        return [pa.array(outputs[:, 0].double().contiguous().numpy())]


class NumberError:
    """Squared or absolute error in units of the labels' deviation.

    centre, deviation: mean and standard deviation of the training nodes' labels
    """

    def __init__(self, centre: float, deviation: float, absolute: bool) -> None:
        self.centre, self.deviation = centre, deviation
        self.absolute = absolute

    def prepare(self, model: nn.Module) -> None:
        """Set the model's output scale. A model of the user's own without `set_output_scale` has to
        learn the labels' unit itself."""
        set_output_scale = getattr(model, "set_output_scale", None)
        if set_output_scale is not None:
            set_output_scale(self.centre, self.deviation)

    def __call__(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of each node, (nodes,): ((output - label) / deviation)², or its absolute
        value without the square."""
        error = (outputs[:, 0] - labels) / self.deviation
        return error.abs() if self.absolute else error.square()


def mean_and_deviation(labels: Tensor) -> tuple[float, float]:
    """Return the mean and standard deviation of (nodes,) numbers; the deviation is 1 if they are
    all the same."""
    mean = float(labels.mean())
    deviation = float((labels - mean).square().mean().sqrt())
    constant = deviation <= 1e-12 * abs(mean)
    return mean, 1.0 if constant else deviation
