"""One number per node: squared or absolute error, in units of the labels' own deviation.

A network learns best when its outputs are of about size 1, and prices are not. So the model is told
mean and deviation of the training labels, which it applies to its outputs as the last step: it
predicts in the labels' unit, while the loss does not depend on it.
"""

from __future__ import annotations

from torch import Tensor, nn

from vrgcn.graph.graph import Graph
from vrgcn.training.config import TrainConfig
from vrgcn.training.objectives.objective import NodeObjective


class Number(NodeObjective):
    """centre, deviation: mean and deviation of the training nodes' labels."""

    target = "one number per node"
    without = ("class_weights", "label_smoothing")

    def __init__(self, graph: Graph, config: TrainConfig) -> None:
        super().__init__(graph, config, outputs=1)
        self.absolute = config.loss == "mae"
        self.centre, self.deviation = mean_and_deviation(self.labels[graph.train])

    def prepare(self, model: nn.Module) -> None:
        """A model of one's own without `set_output_scale` has to find the labels' unit itself."""
        set_output_scale = getattr(model, "set_output_scale", None)
        if set_output_scale is not None:
            set_output_scale(self.centre, self.deviation)

    def loss(self, outputs: Tensor, nodes: Tensor) -> Tensor:
        """(nodes,): ((output - label) / deviation)², or its absolute value without the square."""
        labels = self.labels_of(nodes, outputs.device)
        error = (outputs[:, 0] - labels) / self.deviation
        return error.abs() if self.absolute else error.square()


def mean_and_deviation(labels: Tensor) -> tuple[float, float]:
    """Of (nodes,) numbers; the deviation is 1 where they are all the same."""
    mean = float(labels.mean())
    deviation = float((labels - mean).square().mean().sqrt())
    constant = deviation <= 1e-12 * abs(mean)
    return mean, 1.0 if constant else deviation
