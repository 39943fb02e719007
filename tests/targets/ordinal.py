"""A target that vrgcn does not have, and a metric of its own: ordered classes."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from vrgcn.tasks.classes import OneClass
from vrgcn.tasks.config import LossConfig
from vrgcn.tasks.metrics import LabelMetric
from vrgcn.tasks.task import Criterion, Facts


def steps(outputs: Tensor, labels: Tensor) -> float:
    """The mean number of classes between the predicted one and the label."""
    return float((outputs.argmax(1) - labels).abs().double().mean())


STEPS = LabelMetric("steps", steps, error=True)


class Ordinal(OneClass):
    """One of several ordered classes: to miss the label by one is better than by two."""

    name = "ordinal"
    by_name = True
    metrics = ("steps", "accuracy")
    unused = ("loss", "class_weights", "label_smoothing")

    def criterion(self, settings: LossConfig, facts: Facts) -> Criterion:
        return RankedProbability()


class RankedProbability:
    """The ranked probability score: the squared error of the probability of each class and those
    before it."""

    centre = 0.0

    def prepare(self, model: nn.Module) -> None:
        pass

    def __call__(self, outputs: Tensor, labels: Tensor) -> Tensor:
        until = outputs.softmax(1).cumsum(1)
        reached = labels[:, None] <= torch.arange(outputs.shape[1], device=outputs.device)
        return (until - reached.to(until)).square().sum(1)
