"""`Problem`: what a baseline is fitted to. Labels of other than training nodes are not in it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import torch
from torch import Tensor

from vrgcn.baselines.baseline import Baseline
from vrgcn.files.mistakes import InputError
from vrgcn.graph.graph import Graph
from vrgcn.graph.propagation import Propagation, build_propagation
from vrgcn.graph.sparse import scale_rows
from vrgcn.models.dense import OutputScale
from vrgcn.tasks import find_task
from vrgcn.tasks.config import LossConfig
from vrgcn.tasks.metrics import LabelMetric
from vrgcn.tasks.task import Criterion, Task

T = TypeVar("T")


@dataclass(frozen=True)
class Problem:
    """A graph without labels, the labels of its training nodes, and a score on its validation
    nodes, which is all that is known of their labels.

    graph: with `train` and `val`, features scaled, no labels and no test nodes
    labels: of the training nodes, in the order of `graph.train`
    outputs: how many columns the outputs of a model have
    score: of outputs (validation nodes, `outputs`), by the metric
    seed: of everything that is drawn
    loss: settings of the loss, the one that suits the metric
    over: whether there is no time left to improve what was fitted so far
    made: parts that several baselines share, see `once`
    """

    graph: Graph
    task: Task
    labels: Tensor
    outputs: int
    score: Callable[[Tensor], float]
    better: Callable[[float, float], bool]
    seed: int = 0
    over: Callable[[], bool] = lambda: False
    loss: LossConfig = field(default_factory=LossConfig)
    made: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    @staticmethod
    def of(
        graph: Graph,
        metric: LabelMetric | None = None,
        seed: int = 0,
        over: Callable[[], bool] = lambda: False,
    ) -> Problem:
        """The problem that a graph with labels poses.

        metric: by which validation nodes are scored; None: the one that its task has by default
        """
        if graph.labels is None or not len(graph.train) or not len(graph.val):
            raise InputError("a baseline needs training and validation nodes with labels")
        task = find_task(graph.task)
        chosen, truth = metric or task.find_metric(), graph.labels[graph.val]
        known = {"num_classes": graph.num_classes, "task": graph.task}
        blind = graph.replace(labels=None, test=graph.test[:0], **known)
        return Problem(
            blind,
            task,
            graph.labels[graph.train],
            task.outputs(graph.num_classes),
            lambda outputs: chosen.compute(outputs, truth),
            chosen.better,
            seed,
            over,
            task.suited(LossConfig(), chosen),
        )

    @cached_property
    def propagate(self) -> WholeGraph:
        """Return the exact propagation over all nodes at once, as baselines use it."""
        return WholeGraph(build_propagation("adjacency", self.graph))

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what `make` returned when it was first asked for by this key."""
        if key not in self.made:
            self.made[key] = make()
        made: T = self.made[key]
        return made

    def check_features(self) -> None:
        """Refuse a graph whose nodes have no features, for baselines that learn from them."""
        if not self.graph.num_features:
            raise InputError(
                "the nodes have no features, and this baseline learns from nothing else"
            )

    def criterion(self) -> Criterion:
        """The loss, with what it knows of the training labels."""
        facts = {}
        if self.task.needs(self.loss):
            facts = self.task.facts(self.labels, self.graph.num_classes)
        return self.task.criterion(self.loss, facts)

    def output_scale(self) -> OutputScale:
        """From the unit that numbers are fitted in to that of the labels; nothing for classes."""
        model = Baseline()
        self.criterion().prepare(model)
        return model.output_scale

    def sample(self, nodes: Tensor, most: int) -> Tensor:
        """Places in `nodes`: all, or `most` of them drawn by the seed, ascending."""
        if len(nodes) <= most:
            return torch.arange(len(nodes))
        generator = torch.Generator().manual_seed(self.seed)
        return torch.randperm(len(nodes), generator=generator)[:most].sort()[0]


class WholeGraph:
    """P h for all nodes at once; gradients flow to h."""

    def __init__(self, P: Propagation) -> None:
        self.own = P.own
        self.others = P.rows(torch.arange(P.num_nodes))

    @property
    def nodes(self) -> Tensor:
        """(nodes,): all of them, at every level."""
        return torch.arange(self.others.num_rows)

    def table(self, table: Tensor) -> Tensor:
        """Sums of the neighbours' rows, without a node's own."""
        return self.others @ table

    def __call__(self, h: Tensor) -> Tensor:
        sums = self.others @ h
        alone = not isinstance(self.own, Tensor) and self.own == 0
        return sums if alone else scale_rows(self.own, h) + sums
