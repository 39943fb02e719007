"""LINK: logistic regression on the rows of the adjacency matrix (Zheleva and Getoor, 2009).

    outputs = D^-p A E + b

A is without its diagonal, E has a row of outputs for each node, learned: who a node's neighbours
are tells, whatever their features. The sums over the neighbours (p = 0), their means (p = 1) or
what lies between them (p = 1/2, with rows of frequent neighbours as they are or penalised more) are
taken, whichever is the best on the validation nodes; so are, of a directed graph, edges in their
own direction or in both. On another graph rows follow their nodes, and a new neighbour tells
nothing.
"""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor

from vrgcn.baselines.baseline import Baseline
from vrgcn.baselines.problem import Problem
from vrgcn.baselines.solving import Outputs, System, fit_best
from vrgcn.files.kinds import COUNT, POSITIVE, Kind, one_of
from vrgcn.graph.propagation import build_propagation, is_symmetric, sums_of_rows
from vrgcn.graph.sparse import CSR
from vrgcn.models.node_table import NodeTable

# p above, and the power of the degree by which the penalty of a node's row is stronger.
_POWERS = ((0.5, 0.5), (1.0, 0.0), (0.5, 0.0), (0.0, 0.0))
_MATRICES = ("adjacency", "both")


class Link(Baseline):
    """nodes: of the graph that it was fitted on; power: p above; matrix: a name of propagation"""

    kinds: ClassVar = {
        "in_features": COUNT,
        "classes": POSITIVE,
        "nodes": POSITIVE,
        "power": Kind(lambda value: value in (0, 0.5, 1), "0, 0.5 or 1"),
        "matrix": one_of(*_MATRICES),
    }
    bias: Tensor

    def __init__(
        self, in_features: int, classes: int, nodes: int, power: float, matrix: str
    ) -> None:
        super().__init__(
            in_features=in_features, classes=classes, nodes=nodes, power=power, matrix=matrix
        )
        self.propagation = matrix
        self.neighbours = NodeTable(torch.zeros(nodes, classes), learned=False)
        self.make("bias", classes)

    def forward(self, x: Tensor, propagate: Any) -> Tensor:
        rows = self.neighbours.rows.to(self.bias)
        # One product for the rows and for the degrees.
        sums = propagate.table(torch.cat([rows, rows.new_ones(len(rows), 1)], dim=1))
        outputs = _normalised(sums[:, :-1], sums[:, -1], self.arguments["power"]) + self.bias
        scaled: Tensor = self.output_scale(outputs)
        return scaled


def _normalised(sums: Tensor, degrees: Tensor, power: float) -> Tensor:
    """D^-power times sums over neighbours."""
    return sums * torch.where(degrees > 0, degrees, 1).pow(-power)[:, None]


def fit_link(problem: Problem) -> Baseline:
    """Rows for all neighbours of training nodes; those of others stay 0."""
    directed = not is_symmetric(problem.graph.adjacency)
    return fit_best(
        problem,
        [
            partial(_system, problem, matrix, *powers)
            for matrix in (_MATRICES if directed else _MATRICES[:1])
            for powers in _POWERS
        ],
    )


def _system(problem: Problem, matrix: str, left: float, right: float) -> System:
    graph = problem.graph
    P = build_propagation(matrix, graph)
    train, val = P.rows(graph.train), P.rows(graph.val)
    columns = sums_of_rows(P.transposed.adjacency).to(graph.dtype)
    own = torch.where(columns > 0, columns, 1).pow(-right)[:, None]
    # Rows are made of mean square 1, so that strengths mean what they do elsewhere.
    squares = _normalised(_squares(train) @ own.square(), sums_of_rows(train), 2 * left)
    size = float(squares.double().mean().sqrt()) or 1.0

    def of(rows: CSR) -> Outputs:
        degrees = sums_of_rows(rows).to(graph.dtype)
        return lambda weights, bias: (
            _normalised(rows @ (weights * own / size), degrees, left) + bias
        )

    def model(weights: Tensor, bias: Tensor) -> Link:
        fitted = Link(graph.num_features, problem.outputs, graph.num_nodes, left, matrix)
        problem.criterion().prepare(fitted)
        fitted.neighbours.set(weights * own / size)
        fitted.fill("bias", bias)
        return fitted

    start = torch.zeros(graph.num_nodes, problem.outputs, dtype=graph.dtype)
    return System(of(train), of(val), start, train.num_entries, model)


def _squares(A: CSR) -> CSR:
    """A with each entry squared."""
    values = None if A.values is None else A.values.square()
    return CSR(A.indptr, A.indices, values, A.columns)
