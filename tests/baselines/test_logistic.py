"""Linear baselines: the formula, the fit, what is learned from which nodes."""

from __future__ import annotations

import pytest
import torch

from tests.baselines.problems import TASKS, small
from vrgcn.baselines import logistic as module
from vrgcn.baselines.logistic import Logistic, fit_logistic
from vrgcn.baselines.problem import Problem
from vrgcn.graph.graph import Graph
from vrgcn.graph.propagation import mean
from vrgcn.inference.predict import predict
from vrgcn.tasks import find_task


def scores(graph: Graph, hops: int) -> float:
    model = fit_logistic(Problem.of(graph), hops)
    outputs = predict(model, graph)[graph.test]
    assert graph.labels is not None
    return find_task(graph.task).find_metric().compute(outputs, graph.labels[graph.test])


@pytest.mark.parametrize("sparse", [False, True])
def test_outputs_are_the_formula_of_dense_matrices(sparse: bool) -> None:
    graph = small(sparse=sparse)
    model = fit_logistic(Problem.of(graph), hops=2).double()
    x = graph.features.to_dense().double()
    graph = graph.with_features(x.to_sparse_csr() if sparse else x)
    P, (own, first, second) = mean(graph).to_dense(), model.weights
    degree = graph.adjacency.to_torch(torch.float64).to_dense().sum(1, keepdim=True)
    wanted = x @ own + P @ (x @ first + P @ x @ second) + degree.log1p() * model.degree
    torch.testing.assert_close(predict(model, graph), wanted + model.bias)
    assert model.weights.abs().sum((1, 2)).min() > 0.1
    assert model.degree.abs().sum() > 0


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("task", TASKS)
def test_two_hops_tell_what_own_features_do_not(task: str, sparse: bool) -> None:
    graph = small(task, sparse=sparse)
    alone, two = scores(graph, 0), scores(graph, 2)
    metric = find_task(task).find_metric()
    assert metric.better(two, alone)
    assert two < 6 if metric.error else two > 0.85  # the labels' deviation is 8.2


def test_without_the_products_in_memory_the_fit_is_nearly_the_same(monkeypatch) -> None:
    graph = small()
    kept = scores(graph, 2)
    monkeypatch.setattr(module, "_LARGEST", 0)
    assert abs(scores(graph, 2) - kept) < 0.04


def test_labels_without_sense_are_not_learned() -> None:
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(0, 3, (240,), generator=generator)
    assert scores(small(labels=labels), 2) < 0.5


def test_labels_of_other_than_training_nodes_reach_nothing_but_the_choice(monkeypatch) -> None:
    monkeypatch.setattr(module, "_STRENGTHS", (1e-2,))
    graph = small()
    assert graph.labels is not None
    other = graph.labels.clone()
    for nodes in (graph.val, graph.test):
        other[nodes] = 2 - other[nodes]
    fitted = [fit_logistic(Problem.of(g), 2) for g in (graph, small(labels=other))]
    first, second = (model.state_dict() for model in fitted)
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_the_strength_is_the_one_that_scores_best_on_validation(monkeypatch) -> None:
    graph, seen = small(), []
    problem = Problem.of(graph)

    def score(outputs: torch.Tensor) -> float:
        seen.append(outputs)
        return [0.1, 0.9, 0.9, 0.2][len(seen) - 1]

    model = fit_logistic(Problem(**vars(problem) | {"score": score}), 1)
    assert len(seen) == 4  # two strengths in turn are no better
    torch.testing.assert_close(predict(model, graph)[graph.val], seen[1], rtol=1e-3, atol=1e-4)
    assert isinstance(model, Logistic)
