"""`Task`: what a kind of label decides. Works on tensors and plain values, and knows no graph."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from vrgcn.files.setting_names import setting
from vrgcn.tasks.metrics import METRICS, Metric

UNLABELLED = -1  # the class of a node whose class is not known

# Tensors by name: what a loss has to know of the labels of all training nodes.
Facts = Mapping[str, Tensor]


@dataclass(frozen=True)
class LossSettings:
    """Settings of the usual losses, under the names that `TrainConfig` has for them."""

    loss: str = "auto"
    class_weights: str = "none"
    label_smoothing: float = 0.0


class Criterion(Protocol):
    """A loss with everything that it has to know.

    centre: around what good outputs lie
    """

    centre: float

    def prepare(self, model: nn.Module) -> None:
        """Tell the model what it has to know of the labels before it is trained."""

    def __call__(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """(nodes,): the loss of each node, from its outputs (nodes, width) and its label."""


class Columns(Protocol):
    """What a table shows of predictions beside the ids of the nodes.

    fields: names and types of the columns
    """

    fields: list[tuple[str, pa.DataType]]

    def arrays(self, outputs: Tensor) -> list[pa.Array]:
        """The columns of some nodes, from their outputs (nodes, width)."""


class Task(ABC):
    """A kind of label.

    name: as `Graph.task` has it
    label: a node's label in words, for errors
    has_classes: whether outputs and labels are about classes, which may have names
    several: whether a node may have several classes
    drawn: how nodes are drawn for a random split, in words
    by_name: whether the user has to name the task; else the shape of the labels tells it
    unknown: value of a label that is not known
    metrics: names of the scores that are possible; the first is the one by default
    unused: fields of `LossSettings` that mean nothing here
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

    # Labels.

    @abstractmethod
    def holds(self, labels: Tensor) -> bool:
        """True if labels have the shape and type that a graph keeps labels of this task in."""

    @abstractmethod
    def check_num_classes(self, num_classes: int | None) -> None:
        """Refuse a number of classes that the user gives, where there can be none."""

    @abstractmethod
    def check_labels(
        self, labels: Tensor, num_classes: int | None, num_nodes: int
    ) -> tuple[Tensor, int]:
        """Labels that the user gives as a graph keeps them, and the number of classes."""

    @abstractmethod
    def labelled(self, labels: Tensor, nodes: Tensor | None = None) -> Tensor:
        """(nodes,) bool: whether the label of a node is known; of `nodes` alone, or of all."""

    def from_pyg(self, labels: Tensor) -> Tensor:
        """Labels of PyG's `data.y` in the shape that `check_labels` takes."""
        column = labels.dim() == 2 and labels.shape[1] == 1  # as OGB has them
        return labels[:, 0] if column else labels

    @abstractmethod
    def stored(self, num_nodes: int, num_classes: int) -> tuple[tuple[int, ...], tuple[str, ...]]:
        """Shape of the labels in a file, and the types that they may have there."""

    @abstractmethod
    def wrong(self, labels: Tensor, num_classes: int) -> tuple[Tensor, str]:
        """(nodes,) bool: which labels of a file cannot be; and in words what is right."""

    @abstractmethod
    def strata(self, labels: NDArray[Any], known: NDArray[np.bool_]) -> NDArray[np.int64]:
        """(known nodes,): the groups that a random split in a ratio splits each on its own.

        known: (nodes,) whether the label of a node is known
        """

    @abstractmethod
    def described(self, num_classes: int) -> str:
        """Short words for the labels of a graph."""

    @abstractmethod
    def renumbered(self, labels: Tensor, place: Tensor, classes: int) -> Tensor:
        """Labels as a graph keeps them, under other numbers of classes.

        place: the new number of each class; classes: how many there are then
        """

    # Training.

    @abstractmethod
    def outputs(self, num_classes: int) -> int:
        """How many columns the outputs of a model have."""

    @abstractmethod
    def target(self, num_classes: int) -> str:
        """What a graph of this task has to be predicted, for errors."""

    @abstractmethod
    def columns_of(self, labels: Tensor, num_classes: int) -> Tensor:
        """(nodes, outputs): labels of training nodes as columns of numbers around 0 or 1, for
        models that take those of neighbours."""

    @abstractmethod
    def needs(self, settings: LossSettings) -> tuple[str, ...]:
        """Names of the facts that the loss has to know."""

    @abstractmethod
    def facts(self, labels: Tensor, num_classes: int) -> dict[str, Tensor]:
        """All facts that a loss may need, from the labels of the training nodes."""

    @abstractmethod
    def criterion(self, settings: LossSettings, facts: Facts) -> Criterion:
        """The loss.

        facts: at least those that it needs
        """

    def compared(self, outputs: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Outputs and labels in the shapes that a loss of the user's own takes."""
        return outputs, labels

    def check_settings(self, settings: LossSettings, num_classes: int) -> None:
        """Refuse settings that mean nothing here."""
        for name in self.unused:
            value = getattr(settings, name)
            if value != getattr(LossSettings, name):
                raise ValueError(
                    f"{name} {value!r} ({setting(name)}) means nothing for "
                    f"{self.target(num_classes)}: leave it out"
                )

    def find_metric(self, name: str | None = None) -> Metric:
        """The metric of this name, or the one by default; an error if it cannot score the task."""
        name = self.metrics[0] if name is None else name
        if name not in self.metrics:
            other = "is for another task" if name in METRICS else "is not known"
            raise ValueError(
                f"metric {name!r} ({setting('metric')}) {other}; for {self.name} there are "
                f"{', '.join(self.metrics)}"
            )
        return METRICS[name]

    # Predictions.

    @abstractmethod
    def predicted(self, outputs: Tensor) -> Tensor:
        """Predicted labels from outputs (nodes, width), in the shape of labels."""

    @abstractmethod
    def probabilities(self, outputs: Tensor) -> Tensor:
        """(nodes, classes): the probability of each class; an error where there are no classes."""

    def shares(self, outputs: Tensor) -> Tensor:
        """(nodes, width) float64: what is averaged of several models' outputs, such as
        probabilities."""
        return outputs.double()

    def from_shares(self, shares: Tensor) -> Tensor:
        """(nodes, width) float64: outputs, finite, whose shares these are."""
        return shares

    @abstractmethod
    def array(self, outputs: Tensor) -> Tensor:
        """(nodes, ...): what an array of predictions holds for each node."""

    @abstractmethod
    def columns(self, classes: Sequence[str], top: int | None) -> Columns:
        """The columns of a table of predictions.

        classes: their names; empty where there are none
        top: show so many of the most probable classes alone; None: all
        """

    @abstractmethod
    def check_top(self, top: int | None, classes: int, name: str = "top") -> None:
        """Refuse to choose so many of the most probable classes.

        classes: how many there are
        name: of the argument, for errors
        """


def is_integer(x: Tensor) -> bool:
    """True if a tensor holds whole numbers by its type."""
    return not x.is_floating_point() and not x.is_complex() and x.dtype != torch.bool
