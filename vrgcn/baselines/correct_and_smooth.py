"""Correct and Smooth (Huang et al., ICLR 2021) on a linear model of two hops.

Correct: the model's errors on the training nodes are spread along the edges and added to its
predictions. Smooth: the predictions, on training nodes the labels, are spread in turn.

    Z ← a P Z + (1 - a) E,        E the errors of training nodes, 0 elsewhere
    G ← b P G + (1 - b) (S + Z),  S the model's probabilities; of training nodes their labels

P is the mean over the neighbours. Z is taken as it is, or at the size that errors have on training
nodes (autoscale). Only labels of training nodes are in E and G; a, b and the size are chosen on the
validation nodes.
"""

from __future__ import annotations

from itertools import product
from typing import Any, ClassVar

import torch
from torch import Tensor

from vrgcn.baselines.baseline import Baseline, mean_and_degree
from vrgcn.baselines.label_propagation import SPREAD, STEPS, label_table, spread
from vrgcn.baselines.logistic import Logistic, fit_logistic
from vrgcn.baselines.problem import Problem
from vrgcn.files.kinds import COUNT, FLAG, POSITIVE, one_of
from vrgcn.models.node_table import NodeTable
from vrgcn.tasks import TASKS, find_task

_CORRECT, _SMOOTH = (0.5, 0.9), (0.0, 0.5, 0.9)
_LEAST = 1e-9  # smallest probability


class CorrectAndSmooth(Baseline):
    """hops: of the linear model; nodes: of the graph that it was fitted on; task: of the graph
    correct, smooth: a and b above; autoscale: whether errors are taken at the training nodes' size
    """

    kinds: ClassVar = {
        **dict.fromkeys(("in_features", "classes", "nodes"), POSITIVE),
        "hops": COUNT,
        "correct": SPREAD,
        "smooth": SPREAD,
        "autoscale": FLAG,
        "task": one_of(*TASKS),
    }
    size: Tensor

    def __init__(
        self,
        in_features: int,
        classes: int,
        *,
        hops: int,
        nodes: int,
        correct: float,
        smooth: float,
        autoscale: bool,
        task: str,
    ) -> None:
        super().__init__(
            in_features=in_features,
            classes=classes,
            hops=hops,
            nodes=nodes,
            correct=correct,
            smooth=smooth,
            autoscale=autoscale,
            task=task,
        )
        self.linear = Logistic(in_features, classes, hops)
        # Errors, labels and a mark of training nodes.
        self.known = NodeTable(torch.zeros(nodes, 2 * classes + 1), learned=False)
        self.make("size")

    def forward(self, x: Tensor, propagate: Any) -> Tensor:
        classes, task = self.arguments["classes"], find_task(self.arguments["task"])
        shares = task.shares(self.linear(x, propagate)).to(self.size)
        errors = slice(0, classes)
        start = self.known.rows[propagate.nodes][:, errors].to(self.size)
        z = spread(start, self.known, errors, propagate, self.arguments["correct"])
        if self.arguments["autoscale"]:
            z = z * self.size / z.abs().sum(1, keepdim=True).clamp(min=_LEAST)
        known = self.known.rows[propagate.nodes].to(self.size)
        labels, trained = known[:, classes:-1], known[:, -1:] > 0
        corrected = torch.where(trained, labels, shares[: len(z)] + z)
        found, b = corrected, self.arguments["smooth"]
        for _ in range(STEPS):
            mean, _ = mean_and_degree(found, propagate)
            found = b * mean + (1 - b) * corrected[: len(mean)]
        if task.has_classes:
            found = found.clamp(min=_LEAST)
            found = found.clamp(max=1) if task.several else found / found.sum(1, keepdim=True)
        scaled: Tensor = self.output_scale(task.from_shares(found).to(self.size))
        return scaled


def fit_correct_and_smooth(problem: Problem, hops: int = 2) -> CorrectAndSmooth:
    """The linear model, corrected and smoothed as is the best on the validation nodes."""
    graph, task = problem.graph, problem.task
    linear = fit_logistic(problem, hops)
    table, _ = label_table(problem)
    labels = table[graph.train][:, :-1]
    # Numbers are corrected in the unit that they were fitted in; the whole has the labels' unit.
    linear.output_scale = type(linear.output_scale)()
    with torch.no_grad():
        outputs = linear(graph.features.to(graph.dtype), problem.propagate)[graph.train]
        errors = labels - task.shares(outputs).to(labels)
    known = torch.zeros(graph.num_nodes, 2 * problem.outputs + 1, dtype=graph.dtype)
    known[graph.train] = torch.cat([errors, labels, torch.ones_like(errors[:, :1])], dim=1)
    kept, best = None, float("nan")
    for correct, smooth, autoscale in product(_CORRECT, _SMOOTH, (True, False)):
        model = CorrectAndSmooth(
            graph.num_features,
            problem.outputs,
            hops=hops,
            nodes=graph.num_nodes,
            correct=correct,
            smooth=smooth,
            autoscale=autoscale,
            task=task.name,
        )
        model.linear = linear
        model.known.set(known)
        model.fill("size", errors.abs().sum(1).mean())
        problem.criterion().prepare(model)
        with torch.no_grad():
            score = problem.score(model(graph.features, problem.propagate)[graph.val])
        if kept is None or problem.better(score, best):
            kept, best = model, score
        if problem.over():
            break
    assert kept is not None
    return kept
