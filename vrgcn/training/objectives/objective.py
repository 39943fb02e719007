"""What an objective answers, and what those on single nodes share."""

from __future__ import annotations

import math
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from vrgcn.graph.graph import Graph
from vrgcn.training.config import TrainConfig
from vrgcn.training.metrics import Metric, find_metric


@runtime_checkable
class Objective(Protocol):
    """Which nodes are visited, the loss, the score. It knows nothing of how outputs come about.

    outputs: columns that the model must have
    visit: what an epoch visits, as `MiniBatches` takes it: "train", "all" or node ids; or "auto",
        which of the first two depends on the estimator
    trained: (nodes,) bool, the nodes that count in the loss
    metric: the score that is reported, and that decides which epoch is the best
    centre: around what good outputs lie; how far off they are is told relative to that
    """

    outputs: int
    visit: Any
    trained: Tensor
    metric: Metric
    centre: float

    def prepare(self, model: nn.Module) -> None:
        """What the model has to know of the labels before it is trained."""

    def check_outputs(self, outputs: Tensor) -> None:
        """Refuse outputs that cannot be compared with the labels."""

    def loss(self, outputs: Tensor, nodes: Tensor) -> Tensor:
        """(nodes,): of each node, from the model's outputs (nodes, `outputs`) for it."""

    def score(self, outputs: Tensor, nodes: Tensor) -> float:
        """By the metric, of the model's outputs (nodes, `outputs`) for some nodes."""

    def better(self, score: float, other: float) -> bool:
        """Whether a score is better than another."""


class NodeObjective:
    """An objective on single nodes, each of which has a label.

    target: what the labels are, for errors
    without: settings that mean nothing here
    """

    target: str
    without: tuple[str, ...]
    centre: float = 0.0

    def __init__(self, graph: Graph, config: TrainConfig, outputs: int) -> None:
        assert graph.labels is not None
        for name in self.without:
            value = getattr(config, name)
            if value != getattr(TrainConfig, name):
                flag = name.replace("_", "-")
                raise ValueError(
                    f"{name} {value!r} (--{flag}) means nothing for {self.target}: leave it out"
                )
        self.outputs = outputs
        self.labels = graph.labels
        self.visit = config.visit
        self.trained = torch.zeros(graph.num_nodes, dtype=torch.bool)
        self.trained[graph.train] = True
        self.trained &= graph.labelled
        self.metric = find_metric(config.metric, graph.task)
        self._check_metric(graph)

    def prepare(self, model: nn.Module) -> None:
        pass

    def check_outputs(self, outputs: Tensor) -> None:
        if outputs.dim() != 2 or outputs.shape[1] != self.outputs:
            raise ValueError(
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
        """Refuse, before hours of training, a metric that the nodes to be scored do not allow."""
        for name in ("val", "test"):
            nodes = graph.split(name)
            if len(nodes) and math.isnan(self.score(torch.zeros(len(nodes), self.outputs), nodes)):
                raise ValueError(
                    f"{self.metric.title} of the {name} nodes does not exist: it needs "
                    f"{self.metric.needs}; choose another metric (--metric)"
                )
