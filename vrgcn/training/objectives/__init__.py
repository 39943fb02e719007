"""What a model is trained for: one class per node, several, or a number.

A new objective is a class with the methods of `Objective`, in a file of its own, and a line in
`OBJECTIVES`.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from vrgcn.graph.graph import Graph
from vrgcn.graph.validation import Task
from vrgcn.training.config import TrainConfig
from vrgcn.training.objectives.number import Number
from vrgcn.training.objectives.objective import Objective
from vrgcn.training.objectives.one_class import OneClass, cross_entropy
from vrgcn.training.objectives.own_loss import Loss, OwnLoss
from vrgcn.training.objectives.several_classes import SeveralClasses, sigmoid_cross_entropy

__all__ = ["OBJECTIVES", "Loss", "Objective", "build_objective", "find_objective", "loss_per_node"]

OBJECTIVES: dict[Task, Callable[[Graph, TrainConfig], Objective]] = {
    "classes": OneClass,
    "multilabel": SeveralClasses,
    "regression": Number,
}


def build_objective(graph: Graph, config: TrainConfig | None = None) -> Objective:
    """The objective that a graph's labels stand for, as the config says."""
    if graph.labels is None:
        raise ValueError("the graph has no labels to train on")
    if not len(graph.train):
        raise ValueError(
            "the graph has no training nodes: give it a train split, or draw one: --ratio 0.6 0.2 "
            "0.2, from Python random_split(graph, (0.6, 0.2, 0.2))"
        )
    return OBJECTIVES[graph.task](graph, config or TrainConfig())


def find_objective(given: Objective | Loss | None, graph: Graph, config: TrainConfig) -> Objective:
    """An objective as it is given; of a loss, what the graph's labels stand for with that loss."""
    if given is None:
        return build_objective(graph, config)
    if isinstance(given, Objective):
        return given
    if not callable(given):
        raise TypeError(f"objective: {given!r} is neither an Objective nor a function")
    for name in ("loss", "class_weights", "label_smoothing"):
        if getattr(config, name) != getattr(TrainConfig, name):
            raise ValueError(
                f"{name} {getattr(config, name)!r} is of the usual loss, and means nothing for a "
                "loss of one's own: leave it out"
            )
    return OwnLoss(build_objective(graph, config), graph, given)


def loss_per_node(outputs: Tensor, labels: Tensor) -> Tensor:
    """(nodes,): the loss of `OneClass` for labels (nodes,), of `SeveralClasses` for labels
    (nodes, classes), all classes weighing the same."""
    one = labels.dim() == 1
    return cross_entropy(outputs, labels) if one else sigmoid_cross_entropy(outputs, labels)
