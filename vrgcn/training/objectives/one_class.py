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

    def loss(self, outputs: Tensor, nodes: Tensor) -> Tensor:
        return cross_entropy(outputs, self.labels_of(nodes, outputs.device), self.weights)


def cross_entropy(outputs: Tensor, labels: Tensor, weights: Tensor | None = None) -> Tensor:
    """(nodes,): -w_y log softmax(outputs)_y with y a node's label; w is 1 without weights."""
    if weights is not None:
        weights = weights.to(outputs)
    return F.cross_entropy(outputs, labels, weights, reduction="none")


def balanced_weights(labels: Tensor, classes: int) -> Tensor:
    """(classes,): nodes / (classes * nodes of the class), so that all classes count the same and a
    node weighs 1 on average. Only classes with nodes are counted; one without weighs nothing.

    labels: (nodes,) of the training nodes
    """
    counts = torch.bincount(labels, minlength=classes).double()
    present = counts > 0
    weights = len(labels) / (present.sum() * counts)
    return torch.where(present, weights, 0.0)
