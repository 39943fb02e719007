"""Objectives with another loss: a function of the user's own, or weights of single nodes."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from vrgcn.files.mistakes import InputError
from vrgcn.graph.graph import Graph
from vrgcn.training.config import TrainConfig
from vrgcn.training.objective import TaskObjective

# Maps (outputs, labels) of some nodes to the loss of each, (nodes,).
Loss = Callable[[Tensor, Tensor], Tensor]


class OwnLoss(TaskObjective):
    """The objective of a graph's task with a loss function of the user's own.

    function: receives the outputs (nodes, classes) and the labels of some nodes as the graph has
        them; for regression, both are (nodes,) and in the unit of the labels
    """

    def __init__(self, graph: Graph, config: TrainConfig, function: Loss) -> None:
        super().__init__(graph, config)
        self.function = function

    @property
    def name(self) -> str:
        """A checkpoint stores it, so that another loss cannot resume the run."""
        own = self.function
        return f"OwnLoss({getattr(own, '__qualname__', type(own).__qualname__)})"

    def loss(self, outputs: Tensor, nodes: Tensor) -> Tensor:
        outputs, labels = self.task.compared(outputs, self.labels_of(nodes, outputs.device))
        losses = self.function(outputs, labels)
        if losses.shape != (len(outputs),):
            raise InputError(
                f"the loss of {len(outputs)} nodes must be ({len(outputs)},), a number for each, "
                f'not {tuple(losses.shape)}; PyTorch\'s own take reduction="none"'
            )
        return losses


class Weighted(TaskObjective):
    """The objective of a graph's task with a weight for each node.

    weights: (nodes,) weight of each node in the loss; only their ratios matter
    """

    def __init__(self, graph: Graph, config: TrainConfig, weights: Tensor) -> None:
        super().__init__(graph, config)
        # The mean is 1, so that a learning rate means the same with and without weights.
        self.weights = weights / weights[self.trained].mean()

    def loss(self, outputs: Tensor, nodes: Tensor) -> Tensor:
        weights = self.weights[nodes.to(self.weights.device)]
        return super().loss(outputs, nodes) * weights.to(outputs)
