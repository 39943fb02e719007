"""One class per node: softmax cross-entropy."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from vrgcn.graph.graph import Graph
from vrgcn.training.config import TrainConfig
from vrgcn.training.objectives.objective import NodeObjective


class OneClass(NodeObjective):
    """weights: (classes,) of the classes in the loss; None where all are the same."""

    without = ("loss",)

    def __init__(self, graph: Graph, config: TrainConfig) -> None:
        self.target = f"{graph.num_classes} classes"
        super().__init__(graph, config, graph.num_classes)
        self.weights: Tensor | None = None
        if config.class_weights == "balanced":
            self.weights = balanced_weights(self.labels[graph.train], graph.num_classes)
        self.smoothing = config.label_smoothing

    def loss(self, outputs: Tensor, nodes: Tensor) -> Tensor:
        labels = self.labels_of(nodes, outputs.device)
        return cross_entropy(outputs, labels, self.weights, self.smoothing)


def cross_entropy(
    outputs: Tensor, labels: Tensor, weights: Tensor | None = None, smoothing: float = 0.0
) -> Tensor:
    """(nodes,): -(1 - s) w_y log p_y - s/K Σ_c w_c log p_c with p = softmax(outputs), y a node's
    label, s the smoothing and K the classes; w is 1 without weights."""
    if weights is not None:
        weights = weights.to(outputs)
    return F.cross_entropy(outputs, labels, weights, reduction="none", label_smoothing=smoothing)


def balanced_weights(labels: Tensor, classes: int) -> Tensor:
    """(classes,): nodes / (classes * nodes of the class), so that all classes count the same and a
    node weighs 1 on average. Only classes with nodes are counted; one without weighs nothing.

    labels: (nodes,) of the training nodes
    """
    counts = torch.bincount(labels, minlength=classes).double()
    present = counts > 0
    weights = len(labels) / (present.sum() * counts)
    return torch.where(present, weights, 0.0)
