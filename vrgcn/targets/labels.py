"""Labels of nodes, by the objective of the graph's task or one of the user's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from torch import Tensor, nn

from vrgcn.engine.batch import Batch
from vrgcn.engine.minibatches import MiniBatches
from vrgcn.graph.graph import Graph
from vrgcn.tasks.metrics import Metric
from vrgcn.training.objective import Objective


class Labels:
    """A target of single nodes; it delegates to an objective.

    graph: has the splits
    """

    warning: str | None = None

    def __init__(self, objective: Objective, graph: Graph) -> None:
        self.objective = objective
        self.graph = graph
        self.tested = True
        self.name: str = getattr(objective, "name", type(objective).__qualname__)
        self.outputs, self.visit = objective.outputs, objective.visit
        self.trained, self.centre = objective.trained, objective.centre
        self.metric: Metric = objective.metric

    def prepare(self, model: nn.Module) -> None:
        self.objective.prepare(model)

    def minibatches(self, model: nn.Module, graph: Graph, **settings: Any) -> MiniBatches:
        return MiniBatches(model, graph, **settings)

    def check_outputs(self, outputs: Tensor) -> None:
        self.objective.check_outputs(outputs)

    def losses(self, batch: Batch, outputs: Tensor) -> Tensor:
        return batch.losses(self.objective, outputs)

    def has(self, split: str) -> bool:
        return len(self.graph.split(split)) > 0 and (self.tested or split != "test")

    def nodes(self, split: str) -> Tensor | None:
        return self.graph.split(split)

    def score_split(self, model: nn.Module, outputs: Tensor, split: str) -> float:
        return self.objective.score(outputs, self.graph.split(split))

    def better(self, score: float, other: float) -> bool:
        return self.objective.better(score, other)

    def rules(self, model: nn.Module, graph: Graph) -> tuple[str, ...]:
        return ()

    def simple_scores(
        self, splits: Sequence[str], width: int
    ) -> Iterator[tuple[str, Mapping[str, float]]]:
        """None: baselines of labels are fitted (baselines/)."""
        return iter(())

    def scoring_work(self, steps: int) -> float:
        return 0.0
