"""How far probabilities can be trusted: of the nodes that a class is predicted for with
probability p, a share of p should have it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from vrgcn.tasks.classes import cross_entropy
from vrgcn.tasks.multilabel import sigmoid_cross_entropy

BINS = 10


@dataclass(frozen=True)
class Reliability:
    """Confidence and accuracy of predictions, in bins of equal width.

    confidence, accuracy: (bins,) means over the predictions of a bin; NaN in an empty one
    counts: (bins,) predictions
    """

    confidence: Tensor
    accuracy: Tensor
    counts: Tensor

    @property
    def error(self) -> float:
        """Expected calibration error: the mean over the predictions of |confidence - accuracy| of
        their bin."""
        gaps = (self.confidence - self.accuracy).abs().nan_to_num()
        return float((gaps * self.counts).sum() / self.counts.sum().clamp(min=1))


def reliability(probabilities: Tensor, labels: Tensor) -> Reliability:
    """Return the reliability of probabilities (nodes, classes).

    labels: (nodes,) classes: of each node the predicted class counts; or (nodes, classes) of 0 and
        1: each pair of a node and a class counts
    """
    probabilities = probabilities.double()
    if labels.dim() == 1:
        confidence, predicted = probabilities.max(1)
        right = predicted == labels
    else:
        confidence, right = probabilities.flatten(), labels.flatten() > 0
    place = (confidence * BINS).long().clamp(max=BINS - 1)
    counts = torch.bincount(place, minlength=BINS)
    sure, hits = (
        torch.bincount(place, weights=values.double(), minlength=BINS) / counts
        for values in (confidence, right)
    )
    return Reliability(sure, hits, counts)


def brier(probabilities: Tensor, labels: Tensor) -> float:
    """Brier score: mean over the nodes of the squared differences between the probabilities of the
    classes and 1 or 0, as a node has them. 0 is best.

    labels: (nodes,) classes, or (nodes, classes) of 0 and 1
    """
    chances = probabilities.double()
    actual = F.one_hot(labels, chances.shape[1]) if labels.dim() == 1 else labels
    return float((chances - actual.double()).square().sum(1).mean())


def log_losses(outputs: Tensor, labels: Tensor) -> Tensor:
    """Log loss of each node, (nodes,): -log of the probability of its class, or the mean of that
    over the classes if a node may have several.

    outputs: (nodes, classes) before the softmax or sigmoid; labels: as for `brier`
    """
    loss = cross_entropy if labels.dim() == 1 else sigmoid_cross_entropy
    return loss(outputs.double(), labels)
