"""A scikit-learn estimator of the user's as a baseline.

The estimator is fitted on [X, P X, P P X, log(1 + degree)] of the training nodes (`HopInputs`), or
on averages over each relation (`RelationInputs`). Its parts are unknown here, and nothing is
pickled: its outputs for the nodes of the graph are kept, in a table under their ids. Other nodes
are refused.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from vrgcn.baselines.baseline import Baseline
from vrgcn.baselines.problem import Problem
from vrgcn.baselines.relation_inputs import exact_rows, fit_columns
from vrgcn.files.kinds import POSITIVE
from vrgcn.files.mistakes import InputError
from vrgcn.models.node_table import NodeTable

_LEAST = 1e-9  # smallest probability


class Remembered(Baseline):
    """nodes: of the graph whose outputs are kept"""

    kinds: ClassVar = dict.fromkeys(("in_features", "classes", "nodes"), POSITIVE)
    unit: Tensor

    def __init__(self, in_features: int, classes: int, nodes: int) -> None:
        super().__init__(in_features=in_features, classes=classes, nodes=nodes)
        self.make("unit")  # of no use but to have the type and the device of the outputs
        # Outputs, and a mark of known nodes.
        self.known = NodeTable(torch.zeros(nodes, classes + 1), learned=False)

    def forward(self, x: Tensor, propagate: Any) -> Tensor:
        rows = self.known.rows[propagate.nodes].to(self.unit)
        if not bool((rows[:, -1] > 0).all()):
            raise InputError(
                "this baseline is an estimator of scikit-learn, of which only the outputs for the "
                "nodes of its own graph are kept: it cannot predict other nodes; fit it again, or "
                "choose models without it (tune without it in `baselines`)"
            )
        return rows[:, :-1]


def fit_estimator(problem: Problem, estimator: Any) -> Remembered:
    """Fit a copy of an estimator and keep its outputs.

    estimator: with `fit` and `predict_proba`, or `predict` for numbers
    """
    from sklearn.base import clone

    graph, task = problem.graph, problem.task
    columns = fit_columns(problem, 2)
    fitted = clone(estimator)
    fitted.fit(columns.train.numpy(), problem.labels[columns.places].numpy())
    kind = graph.kinds.target
    own = torch.arange(graph.num_nodes) if kind is None else graph.kinds.nodes(kind)
    inputs = exact_rows(columns.inputs, graph, own).numpy()
    if task.has_classes:
        outputs = task.from_shares(_probabilities(fitted, inputs, problem))
    else:
        outputs = torch.from_numpy(np.asarray(fitted.predict(inputs), np.float64)).view(-1, 1)
    model = Remembered(graph.num_features, problem.outputs, graph.num_nodes)
    known = torch.zeros(graph.num_nodes, problem.outputs + 1, dtype=graph.dtype)
    known[own] = torch.cat([outputs, outputs.new_ones(len(outputs), 1)], dim=1).to(graph.dtype)
    model.known.set(known)
    model.fill("unit", torch.zeros((), dtype=graph.dtype))
    return model


def _probabilities(fitted: Any, inputs: Any, problem: Problem) -> Tensor:
    """(nodes, outputs): of classes that no training node has, nearly 0."""
    chances = fitted.predict_proba(inputs)
    if problem.task.several:
        if isinstance(chances, list):  # one array for each class
            chances = np.stack([part[:, -1] for part in chances], axis=1)
        return torch.from_numpy(np.asarray(chances, np.float64)).clamp(_LEAST, 1 - _LEAST)
    shares = torch.full((len(inputs), problem.graph.num_classes), _LEAST, dtype=torch.float64)
    classes = torch.as_tensor(np.asarray(fitted.classes_)).long()
    shares[:, classes] = torch.from_numpy(np.asarray(chances, np.float64)).clamp(min=_LEAST)
    return shares / shares.sum(1, keepdim=True)


def estimator_name(estimator: Any, taken: set[str]) -> str:
    """Name of an estimator: its class, with a number where that is taken."""
    name = base = type(estimator).__name__
    count = 1
    while name in taken:
        count += 1
        name = f"{base}-{count}"
    return name
