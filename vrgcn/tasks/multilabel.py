"""The task of several classes per node, with a sigmoid cross-entropy for each class."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from vrgcn.files.mistakes import InputError
from vrgcn.tasks.classes import ClassTask, CrossEntropy
from vrgcn.tasks.config import LossConfig
from vrgcn.tasks.regions import joined_names
from vrgcn.tasks.task import UNLABELLED, Criterion, Facts


class SeveralClasses(ClassTask):
    """Several classes per node. Labels (nodes, classes) of 0 and 1, float32; a row of -1 if
    unknown."""

    name = "multilabel"
    label = "several classes per node"
    several = True
    dimensions = 2
    drawn = "at random (several classes per node)"
    metrics = ("micro-f1", "macro-f1", "roc-auc", "average-precision")

    def holds(self, labels: Tensor) -> bool:
        return labels.dim() == 2

    def labelled(self, labels: Tensor, nodes: Tensor | None = None) -> Tensor:
        first = labels[:, 0]
        return (first if nodes is None else first[nodes]) != UNLABELLED

    def stored(self, num_nodes: int, num_classes: int) -> tuple[tuple[int, ...], tuple[str, ...]]:
        return (num_nodes, num_classes), ("float32",)

    def wrong(self, labels: Tensor, num_classes: int) -> tuple[Tensor, str]:
        unknown = (labels == UNLABELLED).all(1, keepdim=True)
        strange = ((labels != 0) & (labels != 1) & ~unknown).any(1)
        return strange, "0 or 1 for each class, or -1 for all where unknown"

    def strata(self, labels: NDArray[Any], known: NDArray[np.bool_]) -> NDArray[np.int64]:
        return np.zeros(int(known.sum()), np.int64)

    def described(self, num_classes: int) -> str:
        return f"multi-label={num_classes}"

    def columns_of(self, labels: Tensor, num_classes: int) -> Tensor:
        return labels.float()

    def facts(self, labels: Tensor, num_classes: int) -> dict[str, Tensor]:
        return {"weights": balanced_presence(labels)}

    def criterion(self, settings: LossConfig, facts: Facts) -> Criterion:
        weights = facts["weights"] if self.needs(settings) else None
        return SigmoidCrossEntropy(weights, settings.label_smoothing)

    def predicted(self, outputs: Tensor) -> Tensor:
        return outputs > 0

    def probabilities(self, outputs: Tensor) -> Tensor:
        return torch.sigmoid(outputs)

    def from_shares(self, shares: Tensor) -> Tensor:
        return torch.logit(shares, eps=torch.finfo(shares.dtype).eps)

    def names(self, outputs: Tensor, classes: pa.Array) -> pa.Array:
        """Return names joined by "|", or as a JSON list if a class has "|" in its name."""
        return joined_names(self.predicted(outputs), classes)

    def renumbered(self, labels: Tensor, place: Tensor, classes: int) -> Tensor:
        renumbered = labels.new_zeros(len(labels), classes)
        renumbered[:, place] = labels
        renumbered[(labels == UNLABELLED).all(1)] = UNLABELLED
        return renumbered

    def _check_values(self, labels: Tensor, num_classes: int | None) -> tuple[Tensor, int]:
        if labels.is_complex():
            raise TypeError("labels of several classes per node must be 0 or 1")
        y = torch.nan_to_num(labels.float(), nan=UNLABELLED)
        unknown = (y == UNLABELLED).all(1, keepdim=True)
        bad = (y != 0) & (y != 1) & ~unknown
        if bad.any():
            row, column = bad.nonzero()[0].tolist()
            raise InputError(
                f"labels of several classes per node must be 0 or 1 (a whole row of -1 where "
                f"unknown); {int(bad.sum())} are not, first: {float(y[row, column]):g} at node "
                f"{row}, class {column}"
            )
        if num_classes is not None and num_classes != y.shape[1]:
            raise InputError(f"num_classes is {num_classes} but labels have {y.shape[1]} columns")
        return y, y.shape[1]


class SigmoidCrossEntropy(CrossEntropy):
    """Sigmoid cross-entropy. weights: (2, classes) of a class's absence and presence"""

    def __call__(self, outputs: Tensor, labels: Tensor) -> Tensor:
        return sigmoid_cross_entropy(outputs, labels, self.weights, self.smoothing)


def sigmoid_cross_entropy(
    outputs: Tensor, labels: Tensor, weights: Tensor | None = None, smoothing: float = 0.0
) -> Tensor:
    """Return the loss of each node, (nodes,): the mean over the classes of -w_1 y log σ(o) - w_0 (1
    - y) log(1 - σ(o)), with o the output and y the label, 0 or 1, moved towards a half: (1 - s) y +
    s/2, s the smoothing; w is 1 without weights."""
    labels = labels.to(outputs.dtype) * (1 - smoothing) + smoothing / 2
    if weights is None:
        return F.binary_cross_entropy_with_logits(outputs, labels, reduction="none").mean(1)
    absent, present = weights.to(outputs)
    positive = present * labels * F.logsigmoid(outputs)
    missed = absent * (1 - labels) * F.logsigmoid(-outputs)
    return -(positive + missed).mean(1)


def balanced_presence(labels: Tensor) -> Tensor:
    """Return weights (2, classes): nodes / (2 * nodes without the class), nodes / (2 * nodes with
    it), so that presence and absence count the same and the mean weight of a node is 1. Both are 1
    for a class that all nodes have, or none.

    labels: (nodes, classes) of the training nodes
    """
    present = (labels > 0).double().sum(0)
    counts = torch.stack([len(labels) - present, present])
    return torch.where((counts > 0).all(0), len(labels) / (2 * counts), 1.0)
