"""Base of the classification tasks, with one class per node or several."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import pyarrow as pa
import torch
from torch import Tensor, nn

from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.tasks.config import LossConfig
from vrgcn.tasks.task import UNLABELLED, Columns, Task


class ClassTask(Task):
    """A classification task.

    dimensions: of the labels, 1 for (nodes,) and 2 for (nodes, classes)
    """

    has_classes = True
    unused = ("loss",)
    dimensions: ClassVar[int]

    def check_num_classes(self, num_classes: int | None) -> None:
        pass

    def check_labels(
        self, labels: Tensor, num_classes: int | None, num_nodes: int
    ) -> tuple[Tensor, int]:
        if labels.dim() not in (1, 2) or labels.shape[0] != num_nodes or 0 in labels.shape:
            raise InputError(
                f"labels must be ({num_nodes},), one class per node, or ({num_nodes}, classes); "
                f"not {tuple(labels.shape)}"
            )
        if labels.dim() != self.dimensions:
            wanted = "(nodes, classes)" if self.dimensions == 2 else "(nodes,)"
            raise InputError(
                f"task {self.name!r} takes labels of shape {wanted}, not {tuple(labels.shape)}"
            )
        return self._check_values(labels, num_classes)

    def from_pyg(self, labels: Tensor) -> Tensor:
        y = labels if self.several else super().from_pyg(labels)
        if y.dim() != 1 or not y.is_floating_point():
            return y
        if not ((y == y.round()) | y.isnan()).all():
            raise InputError(
                "data.y holds fractions, and no regression was asked for: to predict numbers, "
                'give Graph.from_pyg(data, task="regression")'
            )
        return torch.nan_to_num(y, nan=UNLABELLED).long()

    def outputs(self, num_classes: int) -> int:
        return num_classes

    def target(self, num_classes: int) -> str:
        return f"{num_classes} classes"

    def needs(self, settings: LossConfig) -> tuple[str, ...]:
        return ("weights",) if settings.class_weights == "balanced" else ()

    def shares(self, outputs: Tensor) -> Tensor:
        return self.probabilities(outputs.double())

    def array(self, outputs: Tensor) -> Tensor:
        return self.probabilities(outputs).float()

    def columns(
        self, classes: Sequence[str], top: int | None, threshold: float | None = None
    ) -> Columns:
        if top is not None:
            return TopClasses(self, classes, top)
        return ClassColumns(self, classes, threshold)

    def check_top(self, top: int | None, classes: int) -> None:
        if top is not None and not 1 <= top <= classes:
            raise InputError(
                f"{setting('top')}: must be between 1 and the number of classes, {classes}"
            )

    @abstractmethod
    def names(self, outputs: Tensor, classes: pa.Array) -> pa.Array:
        """Return the names of the predicted classes of each node, (nodes,) texts."""

    @abstractmethod
    def _check_values(self, labels: Tensor, num_classes: int | None) -> tuple[Tensor, int]:
        """Return labels of the right shape as a graph keeps them, and the number of classes."""


class ClassColumns:
    """The columns `label`, and `p_CLASS` for each class.

    threshold: probability from which on the second of two classes is the label; None: the task
        says which is
    """

    def __init__(
        self, task: ClassTask, classes: Sequence[str], threshold: float | None = None
    ) -> None:
        self._task = task
        self._threshold = threshold
        self._classes = pa.array(classes, type=pa.string())
        self.fields = [("label", pa.string()), *((f"p_{name}", pa.float32()) for name in classes)]

    def arrays(self, outputs: Tensor) -> list[pa.Array]:
        chances = self._task.array(outputs)
        shares = [pa.array(column.contiguous().numpy()) for column in chances.t()]
        return [self._labels(outputs), *shares]

    def _labels(self, outputs: Tensor) -> pa.Array:
        if self._threshold is None:
            return self._task.names(outputs, self._classes)
        second = self._task.probabilities(outputs.double())[:, 1] >= self._threshold
        return self._classes.take(pa.array(second.long().numpy()))


class TopClasses:
    """The columns `label_1`, `p_1`, ... from the most probable class down."""

    def __init__(self, task: ClassTask, classes: Sequence[str], top: int) -> None:
        self._task = task
        self._classes = pa.array(classes, type=pa.string())
        self._top = top
        self.fields = []
        for rank in range(1, top + 1):
            self.fields += [(f"label_{rank}", pa.string()), (f"p_{rank}", pa.float32())]

    def arrays(self, outputs: Tensor) -> list[pa.Array]:
        best, places = self._task.array(outputs).topk(self._top, dim=1)
        columns = []
        for rank in range(self._top):
            columns.append(self._classes.take(pa.array(places[:, rank].contiguous().numpy())))
            columns.append(pa.array(best[:, rank].contiguous().numpy()))
        return columns


class CrossEntropy:
    """Base of the cross-entropy losses.

    weights: of the classes; None if all are the same
    smoothing: share of a label that is spread over the classes
    """

    centre = 0.0

    def __init__(self, weights: Tensor | None, smoothing: float) -> None:
        self.weights = weights
        self.smoothing = smoothing

    def prepare(self, model: nn.Module) -> None:
        pass
