"""Correct and Smooth: the formula, and its gain over the linear model alone."""

from __future__ import annotations

import pytest
import torch

from tests.baselines.problems import TASKS, small
from vrgcn.baselines import correct_and_smooth as module
from vrgcn.baselines.correct_and_smooth import fit_correct_and_smooth
from vrgcn.baselines.label_propagation import STEPS
from vrgcn.baselines.logistic import fit_logistic
from vrgcn.baselines.problem import Problem
from vrgcn.graph.graph import Graph
from vrgcn.graph.propagation import mean
from vrgcn.inference.predict import predict
from vrgcn.tasks import find_task


def score(graph: Graph, outputs: torch.Tensor) -> float:
    assert graph.labels is not None
    metric = find_task(graph.task).find_metric()
    return metric.compute(outputs[graph.test], graph.labels[graph.test])


@pytest.mark.parametrize("autoscale", [True, False])
def test_outputs_are_the_formula_of_dense_matrices(monkeypatch, autoscale: bool) -> None:
    monkeypatch.setattr(module, "_CORRECT", (0.9,))
    monkeypatch.setattr(module, "_SMOOTH", (0.5,))
    monkeypatch.setattr(module, "product", lambda *given: [(0.9, 0.5, autoscale)])
    graph = small()
    assert graph.labels is not None
    model = fit_correct_and_smooth(Problem.of(graph), hops=0)
    S = predict(fit_logistic(Problem.of(graph), 0), graph).softmax(1)
    P, Y, train = mean(graph).to_dense(), torch.eye(3)[graph.labels], graph.train
    E = torch.zeros(240, 3)
    E[train] = Y[train] - S[train]
    Z = E
    for _ in range(STEPS):
        Z = 0.9 * (P @ Z) + 0.1 * E
    if autoscale:
        Z = Z * E[train].abs().sum(1).mean() / Z.abs().sum(1, keepdim=True)
    first = S + Z
    first[train] = Y[train]
    G = first
    for _ in range(STEPS):
        G = 0.5 * (P @ G) + 0.5 * first
    wanted = G.clamp(min=0) / G.clamp(min=0).sum(1, keepdim=True)
    torch.testing.assert_close(predict(model, graph).softmax(1), wanted, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("task", TASKS)
def test_it_is_better_than_the_linear_model_alone(task: str) -> None:
    graph = small(task)
    alone = score(graph, predict(fit_logistic(Problem.of(graph), 0), graph))
    smoothed = score(graph, predict(fit_correct_and_smooth(Problem.of(graph), hops=0), graph))
    assert find_task(task).find_metric().better(smoothed, alone)


def test_labels_without_sense_are_not_learned() -> None:
    generator = torch.Generator().manual_seed(0)
    graph = small(labels=torch.randint(0, 3, (240,), generator=generator))
    assert score(graph, predict(fit_correct_and_smooth(Problem.of(graph)), graph)) < 0.5
