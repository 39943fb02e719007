"""What tasks of classes share, whether a node has one class or several."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from torch import Tensor, nn

from vrgcn.tasks.task import LossSettings, Task


class ClassTask(Task):
    """dimensions: of the labels, 1 for (nodes,) and 2 for (nodes, classes)"""

    has_classes = True
    unused = ("loss",)
    dimensions: ClassVar[int]

    def check_num_classes(self, num_classes: int | None) -> None:
        pass

    def check_labels(
        self, labels: Tensor, num_classes: int | None, num_nodes: int
    ) -> tuple[Tensor, int]:
        if labels.dim() not in (1, 2) or labels.shape[0] != num_nodes or 0 in labels.shape:
            raise ValueError(
                f"labels must be ({num_nodes},), one class per node, or ({num_nodes}, classes); "
                f"not {tuple(labels.shape)}"
            )
        if labels.dim() != self.dimensions:
            wanted = "(nodes, classes)" if self.dimensions == 2 else "(nodes,)"
            raise ValueError(
                f"task {self.name!r} takes labels of shape {wanted}, not {tuple(labels.shape)}"
            )
        return self._check_values(labels, num_classes)

    def outputs(self, num_classes: int) -> int:
        return num_classes

    def target(self, num_classes: int) -> str:
        return f"{num_classes} classes"

    def needs(self, settings: LossSettings) -> tuple[str, ...]:
        return ("weights",) if settings.class_weights == "balanced" else ()

    @abstractmethod
    def _check_values(self, labels: Tensor, num_classes: int | None) -> tuple[Tensor, int]:
        """Labels of the right shape as a graph keeps them, and the number of classes."""


class CrossEntropy:
    """weights: of the classes; None where all are the same
    smoothing: share of a label that is spread over the classes
    """

    centre = 0.0

    def __init__(self, weights: Tensor | None, smoothing: float) -> None:
        self.weights = weights
        self.smoothing = smoothing

    def prepare(self, model: nn.Module) -> None:
        pass
