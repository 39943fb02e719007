"""`Task`: everything that a kind of label decides. Works on tensors and plain values, and knows no
graph."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.tasks.config import LossConfig
from vrgcn.tasks.metrics import METRICS, LabelMetric
from vrgcn.tasks.regions import Region

UNLABELLED = -1  # the class of a node whose class is unknown

# Tensors by name: facts about the labels of all training nodes that a loss needs.
Facts = Mapping[str, Tensor]


class Criterion(Protocol):
    """A loss with all facts that it needs.

    centre: the value around which good outputs lie
    """

    centre: float

    def prepare(self, model: nn.Module) -> None:
        """Give the model what it has to know about the labels before training."""

    def __call__(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of each node, (nodes,), from its outputs (nodes, width) and its label."""


class Columns(Protocol):
    """The columns that a table of predictions has beside the ids of the nodes.

    fields: names and types of the columns
    """

    fields: list[tuple[str, pa.DataType]]

    def arrays(self, outputs: Tensor) -> list[pa.Array]:
        """Return the columns of some nodes, from their outputs (nodes, width)."""


class Task(ABC):
    """A kind of label.

    name: as in `Graph.task`
    label: a node's label in words, for errors
    has_classes: True if outputs and labels are about classes, which may have names
    several: True if a node may have several classes
    drawn: how nodes are drawn for a random split, in words
    by_name: True if the user has to name the task; otherwise the shape of the labels decides
    unknown: value of an unknown label
    metrics: names of the possible scores; the first is the default
    unused: fields of `LossConfig` that have no meaning here
    """

    name: ClassVar[str]
    label: ClassVar[str]
    has_classes: ClassVar[bool]
    several: ClassVar[bool] = False
    drawn: ClassVar[str]
    by_name: ClassVar[bool] = False
    unknown: ClassVar[float] = UNLABELLED
    metrics: ClassVar[tuple[str, ...]]
    unused: ClassVar[tuple[str, ...]]

    # Methods on labels.

    @abstractmethod
    def holds(self, labels: Tensor) -> bool:
        """True if labels have the shape and type that a graph keeps labels of this task in."""

    @abstractmethod
    def check_num_classes(self, num_classes: int | None) -> None:
        """Raise if the user gives a number of classes and the task has none."""

    @abstractmethod
    def check_labels(
        self, labels: Tensor, num_classes: int | None, num_nodes: int
    ) -> tuple[Tensor, int]:
        """Return the user's labels as a graph keeps them, and the number of classes."""

    @abstractmethod
    def labelled(self, labels: Tensor, nodes: Tensor | None = None) -> Tensor:
        """Return (nodes,) bool, True if the label of a node is known; for `nodes` only, or for
        all."""

    def from_pyg(self, labels: Tensor) -> Tensor:
        """Return labels of PyG's `data.y` in the shape that `check_labels` takes."""
        column = labels.dim() == 2 and labels.shape[1] == 1  # as OGB has them
        return labels[:, 0] if column else labels

    @abstractmethod
    def stored(self, num_nodes: int, num_classes: int) -> tuple[tuple[int, ...], tuple[str, ...]]:
        """Return the shape of the labels in a file, and the types that they may have there."""

    @abstractmethod
    def wrong(self, labels: Tensor, num_classes: int) -> tuple[Tensor, str]:
        """Return (nodes,) bool, True for invalid labels of a file; and a description of valid
        ones."""

    @abstractmethod
    def strata(self, labels: NDArray[Any], known: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return the groups (known nodes,) that a random split divides separately.

        known: (nodes,) True if the label of a node is known
        """

    @abstractmethod
    def described(self, num_classes: int) -> str:
        """Return a short description of the labels of a graph."""

    @abstractmethod
    def renumbered(self, labels: Tensor, place: Tensor, classes: int) -> Tensor:
        """Return labels as a graph keeps them, with classes renumbered.

        place: the new number of each class; classes: the new number of classes
        """

    # Methods for training.

    @abstractmethod
    def outputs(self, num_classes: int) -> int:
        """Return the number of columns of a model's outputs."""

    @abstractmethod
    def target(self, num_classes: int) -> str:
        """Return what a model predicts on a graph of this task, in words for errors."""

    @abstractmethod
    def columns_of(self, labels: Tensor, num_classes: int) -> Tensor:
        """Return labels of training nodes as columns of numbers around 0 or 1, (nodes, outputs),
        for models that read the labels of neighbours."""

    @abstractmethod
    def needs(self, settings: LossConfig) -> tuple[str, ...]:
        """Return the names of the facts that the loss needs."""

    @abstractmethod
    def facts(self, labels: Tensor, num_classes: int) -> dict[str, Tensor]:
        """Return all facts that a loss may need, from the labels of the training nodes."""

    def suited(self, settings: LossConfig, metric: LabelMetric) -> LossConfig:
        """Return the settings with the loss that `auto` means for a metric."""
        return settings

    @abstractmethod
    def criterion(self, settings: LossConfig, facts: Facts) -> Criterion:
        """Return the loss.

        facts: at least those that it needs
        """

    def compared(self, outputs: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Return outputs and labels in the shapes that a loss of the user's own takes."""
        return outputs, labels

    def check_settings(self, settings: LossConfig, num_classes: int) -> None:
        """Raise if settings have no meaning here."""
        for name in self.unused:
            value = getattr(settings, name)
            if value != getattr(LossConfig, name):
                raise InputError(
                    f"{name} {value!r} ({setting(name)}) means nothing for "
                    f"{self.target(num_classes)}: leave it out"
                )

    def find_metric(self, name: str | None = None) -> LabelMetric:
        """Return the metric of this name, or the default; raise if it cannot score the task."""
        name = self.metrics[0] if name is None else name
        if name not in self.metrics:
            other = "is for another task" if name in METRICS else "is not known"
            raise InputError(
                f"metric {name!r} ({setting('metric')}) {other}; for {self.name} there are "
                f"{', '.join(self.metrics)}"
            )
        return METRICS[name]

    # Methods for predictions.

    @abstractmethod
    def predicted(self, outputs: Tensor) -> Tensor:
        """Return predicted labels from outputs (nodes, width), in the shape of labels."""

    @abstractmethod
    def probabilities(self, outputs: Tensor) -> Tensor:
        """Return the probability of each class, (nodes, classes); raise if there are no classes."""

    def shares(self, outputs: Tensor) -> Tensor:
        """Return the values that are averaged over several models' outputs, such as probabilities:
        (nodes, width) float64."""
        return outputs.double()

    def from_shares(self, shares: Tensor) -> Tensor:
        """Return finite outputs (nodes, width) float64 whose shares are the given ones."""
        return shares

    @abstractmethod
    def array(self, outputs: Tensor) -> Tensor:
        """Return what an array of predictions holds for each node, (nodes, ...)."""

    @abstractmethod
    def columns(
        self, classes: Sequence[str], top: int | None, threshold: float | None = None
    ) -> Columns:
        """Return the columns of a table of predictions.

        classes: their names; empty if there are none
        top: show only this many of the most probable classes; None: all
        threshold: probability of the second of two classes from which on it is the label; None:
            the label is the more probable class
        """

    # Methods for prediction sets and intervals.

    def strangeness(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return how strange each label is for a node's outputs, (nodes,) float64; raise if the
        task has no prediction sets."""
        raise InputError(f"there are no prediction sets for {self.label}")

    def region(self, outputs: Tensor, limit: float) -> Tensor:
        """Return the labels that are at most so strange: classes (nodes, classes) bool, or the ends
        of an interval (nodes, 2)."""
        raise InputError(f"there are no prediction sets for {self.label}")

    def covers(self, regions: Tensor, labels: Tensor) -> Tensor:
        """Return (nodes,) bool, True if the region of a node holds its label.

        regions: as `region` returns them
        """
        raise InputError(f"there are no prediction sets for {self.label}")

    def region_columns(self, classes: Sequence[str], region: Region) -> Columns:
        """Return the columns of a table that show the regions."""
        raise InputError(f"there are no prediction sets for {self.label}")

    @abstractmethod
    def check_top(self, top: int | None, classes: int) -> None:
        """Raise if so many of the most probable classes cannot be chosen.

        classes: how many there are
        """


def is_integer(x: Tensor) -> bool:
    """Return True if a tensor has an integer type."""
    return not x.is_floating_point() and not x.is_complex() and x.dtype != torch.bool
