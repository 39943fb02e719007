"""Losses and scores, for one class per node and for several."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor


def loss_per_node(outputs: Tensor, labels: Tensor) -> Tensor:
    """(nodes,): softmax cross-entropy for labels (nodes,), mean sigmoid cross-entropy over the
    classes for labels (nodes, classes)."""
    if labels.dim() == 1:
        return F.cross_entropy(outputs, labels, reduction="none")
    loss = F.binary_cross_entropy_with_logits(outputs, labels.to(outputs.dtype), reduction="none")
    return loss.mean(1)


def score(outputs: Tensor, labels: Tensor) -> float:
    """Accuracy for labels (nodes,), micro-F1 for labels (nodes, classes)."""
    if labels.dim() == 1:
        return float((outputs.argmax(1) == labels).double().mean())
    predicted, actual = outputs > 0, labels > 0
    hits = int((predicted & actual).sum())
    total = int(predicted.sum()) + int(actual.sum())
    return 2 * hits / total if total else 0.0


def score_name(labels: Tensor) -> str:
    return "accuracy" if labels.dim() == 1 else "micro-F1"


def check_outputs(outputs: Tensor, classes: int) -> None:
    """Refuse a model whose outputs cannot be compared with the labels."""
    if outputs.dim() != 2 or outputs.shape[1] != classes:
        raise ValueError(
            f"the model's output has shape {tuple(outputs.shape)}, and the graph {classes} "
            f"classes: it must be (nodes, {classes})"
        )


@dataclass(frozen=True)
class ClassScores:
    """Of each class, (classes,): precision and recall (NaN where there is nothing to divide by),
    support (how many nodes have it) and predicted (how many were given it)."""

    precision: Tensor
    recall: Tensor
    support: Tensor
    predicted: Tensor

    @property
    def f1(self) -> Tensor:
        """Harmonic mean of precision and recall; 0 for a class that was never hit, NaN for one
        that is neither present nor predicted."""
        hits = torch.nan_to_num(self.recall) * self.support
        return 2 * hits / (self.support + self.predicted)

    @property
    def macro_f1(self) -> float:
        """Mean F1 over the classes that are present or predicted."""
        return float(self.f1.nanmean())


def class_scores(outputs: Tensor, labels: Tensor) -> ClassScores:
    """Scores class by class, for labels (nodes,) or (nodes, classes)."""
    classes = outputs.shape[1]
    if labels.dim() == 1:
        predicted = F.one_hot(outputs.argmax(1), classes) > 0
        actual = F.one_hot(labels, classes) > 0
    else:
        predicted, actual = outputs > 0, labels > 0
    hits = (predicted & actual).sum(0)
    given, support = predicted.sum(0), actual.sum(0)
    return ClassScores(hits / given, hits / support, support, given)


def confusion(outputs: Tensor, labels: Tensor) -> Tensor:
    """(classes, classes): how many nodes of the row's class were given the column's."""
    classes = outputs.shape[1]
    pairs = labels * classes + outputs.argmax(1)
    return torch.bincount(pairs, minlength=classes * classes).view(classes, classes)
