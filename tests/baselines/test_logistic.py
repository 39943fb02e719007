"""Linear baselines: the formula, the fit, what is learned from which nodes."""

from __future__ import annotations

import pytest
import torch

from tests.baselines.problems import TASKS, small
from vrgcn.baselines import logistic as module
from vrgcn.baselines import solving
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
    monkeypatch.setattr(solving, "_STRENGTHS", (1e-2,))
    monkeypatch.setattr(module, "_forms", lambda x: ())
    graph = small()
    assert graph.labels is not None
    other = graph.labels.clone()
    for nodes in (graph.val, graph.test):
        other[nodes] = 2 - other[nodes]
    fitted = [fit_logistic(Problem.of(g), 2) for g in (graph, small(labels=other))]
    first, second = (model.state_dict() for model in fitted)
    assert all(torch.equal(first[name], second[name]) for name in first)


def scored_by(scores: list[float], hops: int, **changed) -> tuple[Logistic, list[torch.Tensor]]:
    """A model whose fits had these scores in turn, and the validation outputs of each."""
    problem, seen = Problem.of(small()), []

    def score(outputs: torch.Tensor) -> float:
        seen.append(outputs)
        return scores[len(seen) - 1]

    model = fit_logistic(Problem(**vars(problem) | {"score": score} | changed), hops)
    assert isinstance(model, Logistic)
    assert len(seen) == len(scores)
    return model, seen


def test_the_strength_and_the_form_are_those_that_score_best_on_validation() -> None:
    # Two strengths in turn that are no better end the first form, and the second, a worse one.
    model, seen = scored_by([0.1, 0.9, 0.9, 0.2, 0.8, 0.7, 0.6], 1)
    graph = small()
    torch.testing.assert_close(predict(model, graph)[graph.val], seen[1], rtol=1e-3, atol=1e-4)


def test_weaker_penalties_are_tried_as_long_as_they_gain(monkeypatch) -> None:
    monkeypatch.setattr(module, "_forms", lambda x: ())
    scored_by([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8], 1)  # down to the weakest of eight


def test_where_fits_take_long_forms_are_compared_by_one_short_fit_each(monkeypatch) -> None:
    monkeypatch.setattr(solving, "_QUICK", 0.0)
    model, seen = scored_by([0.5, 0.4, 0.9, 0.1, 0.1], 1)
    graph = small()
    torch.testing.assert_close(predict(model, graph)[graph.val], seen[2], rtol=1e-3, atol=1e-4)


def test_a_fit_ends_in_the_middle_if_the_time_is_over() -> None:
    asked = iter([False] * 3 + [True] * 1000)
    scored_by([0.5], 1, over=lambda: next(asked))


def test_tags_of_rows_of_one_sum_are_read_as_present_or_not() -> None:
    generator = torch.Generator().manual_seed(2)
    tags = (torch.rand(300, 40, generator=generator) < 0.2).float()
    labels = (tags @ torch.randn(40, generator=generator)).double()
    rows = tags / tags.sum(1, keepdim=True).clamp(min=1)
    for features in (rows, rows.to_sparse_csr()):
        graph = small("regression", nodes=300, labels=labels).with_features(features)
        model = fit_logistic(Problem.of(graph), 0)
        assert model.arguments["form"] == "binary"
        found = predict(model, graph)[graph.test, 0] - labels[graph.test]
        assert found.square().mean().sqrt() < 0.1  # their deviation is above 2
