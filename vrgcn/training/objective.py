"""The objective of training: `Objective`, and the one that belongs to a graph's task."""

from __future__ import annotations

import math
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.graph.graph import Graph
from vrgcn.models.models import GraphModel
from vrgcn.tasks import find_task, task_of
from vrgcn.tasks.config import LossConfig
from vrgcn.tasks.metrics import Metric
from vrgcn.tasks.task import Facts
from vrgcn.training.config import TrainConfig


class Objective(Protocol):
    """What is learned of single nodes: the visited nodes, the loss and the score. It does not
    depend on how outputs are computed. One of your own may be given to `fit`.

    outputs: columns that the model must have
    visit: nodes that an epoch visits, as `MiniBatches` takes them: "train", "all" or node ids; or
        "auto", which lets the estimator decide between the first two
    trained: (nodes,) bool, the nodes that count in the loss
    metric: the score that is reported, and that decides which epoch is the best
    centre: the value around which good outputs lie; errors are reported relative to it
    """

    outputs: int
    visit: Any
    trained: Tensor
    centre: float

    @property
    def metric(self) -> Metric: ...

    def prepare(self, model: nn.Module) -> None:
        """Give the model what it has to know about the labels before training."""

    def check_outputs(self, outputs: Tensor) -> None:
        """Raise if outputs cannot be compared with the labels."""

    def loss(self, outputs: Tensor, nodes: Tensor) -> Tensor:
        """Return the loss of each node, (nodes,), from the model's outputs (nodes, `outputs`)."""

    def score(self, outputs: Tensor, nodes: Tensor) -> float:
        """Return the metric of the model's outputs (nodes, `outputs`) for some nodes."""

    def better(self, score: float, other: float) -> bool:
        """Return True if a score is better than another."""


class TaskObjective:
    """The objective of a graph's task, on single nodes, each of which has a label.

    criterion: the loss of outputs and labels, with the facts that it needs about the training
        labels
    """

    def __init__(self, graph: Graph, config: TrainConfig, facts: Facts | None = None) -> None:
        """Build the objective.

        facts: what the loss has to know about the training labels; None: computed from the graph
        """
        assert graph.labels is not None
        self.task = find_task(graph.task)
        self.task.check_settings(config, graph.num_classes)
        self.num_classes = graph.num_classes
        self.outputs = self.task.outputs(graph.num_classes)
        self.target = self.task.target(graph.num_classes)
        self.labels = graph.labels
        self.visit = config.visit
        self.trained = torch.zeros(graph.num_nodes, dtype=torch.bool)
        self.trained[graph.train] = True
        self.trained &= graph.labelled
        self.metric = self.task.find_metric(config.metric)
        self._check_metric(graph)
        if facts is None:
            facts = {}
            if self.task.needs(config):
                facts = self.task.facts(self.labels[graph.train], graph.num_classes)
        self.criterion = self.task.criterion(self.task.suited(config, self.metric), facts)
        self.centre = self.criterion.centre

    @property
    def name(self) -> str:
        """Name of the objective; a checkpoint stores it, so that another objective cannot resume
        the run."""
        kind = type(self)
        return type(self.task).__qualname__ if kind is TaskObjective else kind.__qualname__

    def prepare(self, model: nn.Module) -> None:
        self.criterion.prepare(model)
        if isinstance(model, GraphModel) and model.labels is not None:
            known = self.task.labelled(self.labels)  # an objective may train on nodes without one
            nodes = (self.trained & known).nonzero()[:, 0]
            columns = self.task.columns_of(self.labels[nodes], self.num_classes)
            model.set_labels(nodes, columns)

    def loss(self, outputs: Tensor, nodes: Tensor) -> Tensor:
        return self.criterion(outputs, self.labels_of(nodes, outputs.device))

    def check_outputs(self, outputs: Tensor) -> None:
        if outputs.dim() != 2 or outputs.shape[1] != self.outputs:
            raise InputError(
                f"the model's output has shape {tuple(outputs.shape)}, and the graph "
                f"{self.target}: it must be (nodes, {self.outputs})"
            )

    def score(self, outputs: Tensor, nodes: Tensor) -> float:
        return self.metric.compute(outputs, self.labels_of(nodes, outputs.device))

    def better(self, score: float, other: float) -> bool:
        return self.metric.better(score, other)

    def labels_of(self, nodes: Tensor, device: torch.device) -> Tensor:
        return self.labels[nodes.to(self.labels.device)].to(device)

    def _check_metric(self, graph: Graph) -> None:
        """Raise, before hours of training, if the metric cannot be computed on the nodes to be
        scored."""
        for name in ("val", "test"):
            nodes = graph.split(name)
            if len(nodes) and math.isnan(self.score(torch.zeros(len(nodes), self.outputs), nodes)):
                raise InputError(
                    f"{self.metric.title} of the {name} nodes does not exist: it needs "
                    f"{self.metric.needs}; choose another metric ({setting('metric')})"
                )


def build_objective(graph: Graph, config: TrainConfig | None = None) -> TaskObjective:
    """Return the objective that a graph's labels stand for, as the config says."""
    check_labels(graph)
    return TaskObjective(graph, config or TrainConfig())


def check_labels(graph: Graph) -> None:
    """Raise if a graph has no labels or no training nodes."""
    if graph.labels is None:
        raise InputError("the graph has no labels to train on")
    if not len(graph.train):
        raise InputError(
            "the graph has no training nodes: give it a train split, or draw one: --ratio 0.6 0.2 "
            "0.2, from Python random_split(graph, (0.6, 0.2, 0.2))"
        )


def loss_per_node(outputs: Tensor, labels: Tensor) -> Tensor:
    """Return the usual classification loss of each node, (nodes,), for labels (nodes,) or (nodes,
    classes); all classes have the same weight."""
    return task_of(labels).criterion(LossConfig(), {})(outputs, labels)


def score(outputs: Tensor, labels: Tensor) -> float:
    """Return the score by the default metric."""
    return task_of(labels).find_metric().compute(outputs, labels)


def score_name(labels: Tensor) -> str:
    """Return the title of the default metric."""
    return task_of(labels).find_metric().title
