"""Several classes per node: a sigmoid cross-entropy for each class."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from vrgcn.graph.graph import Graph
from vrgcn.training.config import TrainConfig
from vrgcn.training.objectives.objective import NodeObjective


class SeveralClasses(NodeObjective):
    """weights: (2, classes) of a class's absence and presence; None where all are the same."""

    without = ("loss",)

    def __init__(self, graph: Graph, config: TrainConfig) -> None:
        self.target = f"{graph.num_classes} classes"
        super().__init__(graph, config, graph.num_classes)
        self.weights: Tensor | None = None
        if config.class_weights == "balanced":
            self.weights = balanced_presence(self.labels[graph.train])
        self.smoothing = config.label_smoothing

    def loss(self, outputs: Tensor, nodes: Tensor) -> Tensor:
        labels = self.labels_of(nodes, outputs.device)
        return sigmoid_cross_entropy(outputs, labels, self.weights, self.smoothing)


def sigmoid_cross_entropy(
    outputs: Tensor, labels: Tensor, weights: Tensor | None = None, smoothing: float = 0.0
) -> Tensor:
    """(nodes,): the mean over the classes of -w_1 y log σ(o) - w_0 (1 - y) log(1 - σ(o)), with o
    the output and y the label, 0 or 1, moved towards a half: (1 - s) y + s/2, s the smoothing; w is
    1 without weights."""
    labels = labels.to(outputs.dtype) * (1 - smoothing) + smoothing / 2
    if weights is None:
        return F.binary_cross_entropy_with_logits(outputs, labels, reduction="none").mean(1)
    absent, present = weights.to(outputs)
    found = present * labels * F.logsigmoid(outputs)
    missed = absent * (1 - labels) * F.logsigmoid(-outputs)
    return -(found + missed).mean(1)


def balanced_presence(labels: Tensor) -> Tensor:
    """(2, classes): nodes / (2 * nodes without the class), nodes / (2 * nodes with it), so that
    presence and absence count the same and a node weighs 1 on average. Both are 1 for a class that
    all nodes have, or none.

    labels: (nodes, classes) of the training nodes
    """
    present = (labels > 0).double().sum(0)
    counts = torch.stack([len(labels) - present, present])
    return torch.where((counts > 0).all(0), len(labels) / (2 * counts), 1.0)
