"""Label propagation: training labels spread along the edges; features are ignored.

    Z ← a P Z + (1 - a) Y, some times, from Z = Y

P is the mean over the neighbours, Y the training nodes' labels as columns, with one more column of
ones that marks them: what reaches a node, divided by how much of it is labelled, is its prediction.
Where nothing does, it is the share of each class among the training nodes. Only labels of training
nodes are in Y; how far they spread is chosen on the validation nodes.
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from vrgcn.baselines.baseline import Baseline, mean_and_degree
from vrgcn.baselines.problem import Problem
from vrgcn.files.kinds import COUNT, POSITIVE, Kind, one_of
from vrgcn.models.node_table import NodeTable
from vrgcn.tasks import TASKS, find_task

STEPS = 10
_SPREADS = (0.5, 0.8, 0.95)
_LITTLE = 1e-6  # share of a label that counts as zero

SPREAD = Kind(lambda v: type(v) in (int, float) and 0 <= v < 1, "at least 0 and below 1")


def spread(start: Tensor, rows: NodeTable, columns: slice, propagate: Any, a: float) -> Tensor:
    """a P Z + (1 - a) Y, STEPS times from `start`; Y are columns of a table of all nodes."""
    z = start
    for _ in range(STEPS):
        mean, _ = mean_and_degree(z, propagate)
        z = a * mean + (1 - a) * rows.rows[propagate.nodes][:, columns].to(mean)
    return z


class LabelPropagation(Baseline):
    """nodes: of the graph that it was fitted on; spread: a above; task: of the graph"""

    kinds: ClassVar = {
        "in_features": COUNT,  # nothing is learned from them
        "classes": POSITIVE,
        "nodes": POSITIVE,
        "spread": SPREAD,
        "task": one_of(*TASKS),
    }
    prior: Tensor

    def __init__(
        self, in_features: int, classes: int, *, nodes: int, spread: float, task: str
    ) -> None:
        super().__init__(
            in_features=in_features, classes=classes, nodes=nodes, spread=spread, task=task
        )
        self.labels = NodeTable(torch.zeros(nodes, classes + 1), learned=False)
        self.make("prior", classes)

    def forward(self, x: Tensor, propagate: Any) -> Tensor:
        everything = slice(None)
        start = self.labels.rows[propagate.nodes].to(self.prior)
        z = spread(start, self.labels, everything, propagate, self.arguments["spread"])
        shares = (z[:, :-1] + _LITTLE * self.prior) / (z[:, -1:] + _LITTLE)
        task = find_task(self.arguments["task"])
        scaled: Tensor = self.output_scale(task.from_shares(shares).to(self.prior))
        return scaled


def label_table(problem: Problem) -> tuple[Tensor, Tensor]:
    """(nodes, outputs + 1): labels of training nodes as columns, and a mark of 1; 0 elsewhere. And
    (outputs,): their means."""
    graph = problem.graph
    columns = problem.task.columns_of(problem.labels, graph.num_classes).to(graph.dtype)
    table = torch.zeros(graph.num_nodes, problem.outputs + 1, dtype=graph.dtype)
    table[graph.train] = torch.cat([columns, columns.new_ones(len(columns), 1)], dim=1)
    return table, columns.mean(0)


def fit_label_propagation(problem: Problem) -> LabelPropagation:
    """The spread that is the best on the validation nodes."""
    graph = problem.graph
    table, prior = label_table(problem)
    kept, best = None, float("nan")
    for a in _SPREADS:
        model = LabelPropagation(
            graph.num_features,
            problem.outputs,
            nodes=graph.num_nodes,
            spread=a,
            task=problem.task.name,
        )
        model.labels.set(table)
        model.fill("prior", prior)
        problem.criterion().prepare(model)
        with torch.no_grad():
            score = problem.score(model(graph.features, problem.propagate)[graph.val])
        if kept is None or problem.better(score, best):
            kept, best = model, score
        if problem.over():
            break
    assert kept is not None
    return kept
