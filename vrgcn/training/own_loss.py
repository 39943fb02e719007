"""Objectives with another loss: a function of the user's own, or weights of single nodes."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from vrgcn.files.mistakes import InputError
from vrgcn.graph.graph import Graph
from vrgcn.tasks import find_task
from vrgcn.training.objective import Objective

# Maps (outputs, labels) of some nodes to the loss of each, (nodes,).
Loss = Callable[[Tensor, Tensor], Tensor]


class _Changed:
    """Delegates everything except the loss to another objective."""

    def __init__(self, base: Objective) -> None:
        self.base = base
        self.outputs, self.visit, self.trained = base.outputs, base.visit, base.trained
        self.metric, self.centre = base.metric, base.centre

    def prepare(self, model: nn.Module) -> None:
        self.base.prepare(model)

    def check_outputs(self, outputs: Tensor) -> None:
        self.base.check_outputs(outputs)

    def score(self, outputs: Tensor, nodes: Tensor) -> float:
        return self.base.score(outputs, nodes)

    def better(self, score: float, other: float) -> bool:
        return self.base.better(score, other)


class OwnLoss(_Changed):
    """An objective with a loss function of the user's own.

    function: receives the outputs (nodes, classes) and the labels of some nodes as the graph has
        them; for regression, both are (nodes,) and in the unit of the labels
    """

    def __init__(self, base: Objective, graph: Graph, function: Loss) -> None:
        super().__init__(base)
        assert graph.labels is not None
        self.labels = graph.labels
        self.task = find_task(graph.task)
        self.function = function
        # A checkpoint stores this name, so that another loss cannot resume the run.
        self.name = f"OwnLoss({getattr(function, '__qualname__', type(function).__qualname__)})"

    def loss(self, outputs: Tensor, nodes: Tensor) -> Tensor:
        labels = self.labels[nodes.to(self.labels.device)].to(outputs.device)
        outputs, labels = self.task.compared(outputs, labels)
        losses = self.function(outputs, labels)
        if losses.shape != (len(outputs),):
            raise InputError(
                f"the loss of {len(outputs)} nodes must be ({len(outputs)},), a number for each, "
                f'not {tuple(losses.shape)}; PyTorch\'s own take reduction="none"'
            )
        return losses


class Weighted(_Changed):
    """An objective with a weight for each node.

    weights: (nodes,) weight of each node in the loss; only their ratios matter
    """

    def __init__(self, base: Objective, weights: Tensor) -> None:
        super().__init__(base)
        # The mean is 1, so that a learning rate means the same with and without weights.
        self.weights = weights / weights[base.trained].mean()

    def loss(self, outputs: Tensor, nodes: Tensor) -> Tensor:
        weights = self.weights[nodes.to(self.weights.device)]
        return self.base.loss(outputs, nodes) * weights.to(outputs)
