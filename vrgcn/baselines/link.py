"""LINK: logistic regression on the rows of the adjacency matrix (Zheleva and Getoor, 2009).

    outputs = P E + b

P = D^-1/2 A D^-1/2 without its diagonal, E has a row of outputs for each node, learned: who a
node's neighbours are tells, whatever their features. Fitted as the linear baselines are. On another
graph rows follow their nodes, and a new neighbour tells nothing.
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from vrgcn.baselines.baseline import Baseline
from vrgcn.baselines.logistic import solve
from vrgcn.baselines.problem import Problem
from vrgcn.files.kinds import COUNT, POSITIVE
from vrgcn.graph.propagation import build_propagation
from vrgcn.models.node_table import NodeTable


class Link(Baseline):
    """nodes: of the graph that it was fitted on"""

    propagation = "gcn"
    kinds: ClassVar = {"in_features": COUNT, "classes": POSITIVE, "nodes": POSITIVE}
    bias: Tensor

    def __init__(self, in_features: int, classes: int, nodes: int) -> None:
        super().__init__(in_features=in_features, classes=classes, nodes=nodes)
        self.neighbours = NodeTable(torch.zeros(nodes, classes), learned=False)
        self.make("bias", classes)

    def forward(self, x: Tensor, propagate: Any) -> Tensor:
        table = self.neighbours.rows.to(self.bias)
        scaled: Tensor = self.output_scale(propagate.table(table) + self.bias)
        return scaled


def fit_link(problem: Problem) -> Link:
    """Rows for all neighbours of training nodes; those of others stay 0."""
    graph = problem.graph
    model = Link(graph.num_features, problem.outputs, graph.num_nodes)
    problem.criterion().prepare(model)
    P = build_propagation(model.propagation, graph)
    train, val = P.rows(graph.train), P.rows(graph.val)
    # Rows of P are short: made of mean square 1, strengths mean what they do elsewhere.
    size = float((train.weights().double().square().sum() / train.num_rows).sqrt()) or 1.0
    start = torch.zeros(graph.num_nodes, problem.outputs, dtype=graph.dtype)
    weights, bias = solve(
        problem,
        model,
        lambda weights, bias: train @ weights / size + bias,
        lambda weights, bias: val @ weights / size + bias,
        start,
        train.num_entries,
    )
    model.neighbours.set(weights / size)
    model.fill("bias", bias)
    return model
