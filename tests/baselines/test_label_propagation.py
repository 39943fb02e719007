"""Label propagation: the formula, and labels of training nodes alone."""

from __future__ import annotations

import pytest
import torch

from tests.baselines.problems import TASKS, small
from vrgcn.baselines import label_propagation as module
from vrgcn.baselines.label_propagation import fit_label_propagation
from vrgcn.baselines.problem import Problem
from vrgcn.graph.graph import Graph
from vrgcn.graph.propagation import mean
from vrgcn.inference.predict import predict
from vrgcn.tasks import find_task


def score(graph: Graph) -> float:
    assert graph.labels is not None
    outputs = predict(fit_label_propagation(Problem.of(graph)), graph)[graph.test]
    return find_task(graph.task).find_metric().compute(outputs, graph.labels[graph.test])


def test_outputs_are_the_formula_of_dense_matrices() -> None:
    graph = small()
    assert graph.labels is not None
    model = fit_label_propagation(Problem.of(graph))
    a = model.arguments["spread"]
    Y = torch.zeros(240, 4)
    Y[graph.train, graph.labels[graph.train]] = 1
    Y[graph.train, 3] = 1
    P, Z = mean(graph).to_dense(), Y
    for _ in range(module.STEPS):
        Z = a * (P @ Z) + (1 - a) * Y
    wanted = Z[:, :3] / Z[:, 3:]
    torch.testing.assert_close(predict(model, graph).softmax(1), wanted, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("task", TASKS)
def test_neighbours_labels_tell_a_nodes_own(task: str) -> None:
    found = score(small(task))
    # The standard deviation of the numbers is 8.2.
    assert found < 1 if task == "regression" else found > 0.95


def test_labels_without_sense_are_not_learned() -> None:
    generator = torch.Generator().manual_seed(0)
    assert score(small(labels=torch.randint(0, 3, (240,), generator=generator))) < 0.5


def test_a_node_that_no_label_reaches_has_the_shares_of_the_training_nodes() -> None:
    graph = small()
    alone = Graph(
        torch.zeros(2, 0, dtype=torch.int64),
        graph.features,
        graph.labels,
        train=graph.train,
        val=graph.val,
    )
    assert graph.labels is not None
    outputs = predict(fit_label_propagation(Problem.of(alone)), alone)
    counts = torch.bincount(graph.labels[graph.train]).float()
    torch.testing.assert_close(outputs[graph.val[0]].softmax(0), counts / counts.sum())
