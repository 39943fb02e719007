"""Classification: the base of its tasks, and the task of one class per node with softmax
cross-entropy."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.tasks.config import LossConfig
from vrgcn.tasks.regions import Region, SetColumn
from vrgcn.tasks.task import UNLABELLED, Columns, Criterion, Facts, Task, is_integer


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


class OneClass(ClassTask):
    """One class per node. Labels (nodes,): the class of each node, -1 if unknown."""

    name = "classes"
    label = "one class per node"
    dimensions = 1
    drawn = "class by class"
    metrics = ("accuracy", "micro-f1", "macro-f1", "roc-auc", "average-precision")

    def holds(self, labels: Tensor) -> bool:
        return labels.dim() == 1 and not labels.is_floating_point()

    def labelled(self, labels: Tensor, nodes: Tensor | None = None) -> Tensor:
        return (labels if nodes is None else labels[nodes]) != UNLABELLED

    def stored(self, num_nodes: int, num_classes: int) -> tuple[tuple[int, ...], tuple[str, ...]]:
        return (num_nodes,), ("int64",)

    def wrong(self, labels: Tensor, num_classes: int) -> tuple[Tensor, str]:
        outside = (labels < UNLABELLED) | (labels >= num_classes)
        return outside, f"a class of 0..{num_classes - 1}, or -1 where unknown"

    def strata(self, labels: NDArray[Any], known: NDArray[np.bool_]) -> NDArray[np.int64]:
        return labels[known]

    def described(self, num_classes: int) -> str:
        return f"classes={num_classes}"

    def columns_of(self, labels: Tensor, num_classes: int) -> Tensor:
        return F.one_hot(labels, num_classes).float()

    def facts(self, labels: Tensor, num_classes: int) -> dict[str, Tensor]:
        return {"weights": balanced_weights(labels, num_classes)}

    def criterion(self, settings: LossConfig, facts: Facts) -> Criterion:
        weights = facts["weights"] if self.needs(settings) else None
        return SoftmaxCrossEntropy(weights, settings.label_smoothing)

    def predicted(self, outputs: Tensor) -> Tensor:
        return outputs.argmax(1)

    def probabilities(self, outputs: Tensor) -> Tensor:
        return torch.softmax(outputs, 1)

    def strangeness(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """1 - the probability of the label."""
        chances = self.probabilities(outputs.double())
        return 1 - chances.gather(1, labels[:, None])[:, 0]

    def region(self, outputs: Tensor, limit: float) -> Tensor:
        """The classes that are probable enough; the most probable one always."""
        inside = 1 - self.probabilities(outputs.double()) <= limit
        return inside.scatter(1, outputs.argmax(1, keepdim=True), True)

    def covers(self, regions: Tensor, labels: Tensor) -> Tensor:
        return regions.gather(1, labels[:, None])[:, 0]

    def region_columns(self, classes: Sequence[str], region: Region) -> Columns:
        return SetColumn(region, classes)

    def from_shares(self, shares: Tensor) -> Tensor:
        return shares.clamp(min=torch.finfo(shares.dtype).tiny).log()

    def names(self, outputs: Tensor, classes: pa.Array) -> pa.Array:
        return classes.take(pa.array(self.predicted(outputs).numpy()))

    def renumbered(self, labels: Tensor, place: Tensor, classes: int) -> Tensor:
        return torch.where(labels >= 0, place[labels.clamp(min=0)], UNLABELLED)

    def _check_values(self, labels: Tensor, num_classes: int | None) -> tuple[Tensor, int]:
        if not is_integer(labels):
            raise TypeError(
                f"labels of one class per node must be integers (-1 where unknown), not "
                f'{labels.dtype}; if they are numbers to be predicted, give task="regression"'
            )
        y = labels.long()
        classes = num_classes if num_classes is not None else int(y.max()) + 1
        bad = (y < UNLABELLED) | (y >= classes)
        if bad.any():
            first = int(bad.nonzero()[0, 0])
            wrong = f"outside 0..{classes - 1} (-1 where unknown)"
            if classes < 1:
                wrong = "below 0 and not -1, which stands for an unknown one"
            raise InputError(
                f"{int(bad.sum())} labels are {wrong}, first: {int(y[first])} at node {first}"
            )
        return y, max(classes, 0)


class SoftmaxCrossEntropy(CrossEntropy):
    """Softmax cross-entropy. weights: (classes,)"""

    def __call__(self, outputs: Tensor, labels: Tensor) -> Tensor:
        return cross_entropy(outputs, labels, self.weights, self.smoothing)


def cross_entropy(
    outputs: Tensor, labels: Tensor, weights: Tensor | None = None, smoothing: float = 0.0
) -> Tensor:
    """Return the loss of each node, (nodes,): -(1 - s) w_y log p_y - s/K Σ_c w_c log p_c with p =
    softmax(outputs), y a node's label, s the smoothing and K the classes; w is 1 without
    weights."""
    if weights is not None:
        weights = weights.to(outputs)
    return F.cross_entropy(outputs, labels, weights, reduction="none", label_smoothing=smoothing)


def balanced_weights(labels: Tensor, classes: int) -> Tensor:
    """Return a weight for each class, (classes,): nodes / (classes * nodes of the class), so that
    all classes count the same and the mean weight of a node is 1. Only classes with nodes are
    counted; a class without nodes has weight 0.

    labels: (nodes,) of the training nodes
    """
    counts = torch.bincount(labels, minlength=classes).double()
    present = counts > 0
    weights = len(labels) / (present.sum() * counts)
    return torch.where(present, weights, 0.0)
