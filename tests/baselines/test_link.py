"""LINK: the formula, and rows that follow their nodes."""

from __future__ import annotations

import pytest
import torch

from tests.baselines.problems import TASKS, small
from vrgcn.baselines.link import fit_link
from vrgcn.baselines.problem import Problem
from vrgcn.graph.propagation import gcn
from vrgcn.inference.predict import predict
from vrgcn.tasks import find_task


def test_outputs_are_the_formula_of_dense_matrices() -> None:
    graph = small()
    model = fit_link(Problem.of(graph))
    P = gcn(graph).to_dense()
    P.fill_diagonal_(0)
    torch.testing.assert_close(
        predict(model, graph), P @ model.neighbours.rows + model.bias, rtol=1e-4, atol=1e-5
    )
    # A node that no training node has for a neighbour tells nothing.
    unseen = (P[graph.train] == 0).all(0)
    assert unseen.any()
    assert (model.neighbours.rows[unseen] == 0).all()


@pytest.mark.parametrize("task", TASKS)
def test_who_the_neighbours_are_tells_labels(task: str) -> None:
    graph = small(task, nodes=120)
    assert graph.labels is not None
    outputs = predict(fit_link(Problem.of(graph)), graph)[graph.test]
    found = find_task(task).find_metric().compute(outputs, graph.labels[graph.test])
    assert found < 7 if task == "regression" else found > 0.7
