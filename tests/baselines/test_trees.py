"""Boosted trees: as tensors they say what the library says; and what is grown from which nodes."""

from __future__ import annotations

import sys
from types import ModuleType

import numpy as np
import pytest
import torch

from tests.baselines.problems import TASKS, small
from tests.messages import refused
from vrgcn.baselines import trees as module
from vrgcn.baselines.boosting import LightBooster, ScikitBooster, rounded_down
from vrgcn.baselines.problem import Problem
from vrgcn.baselines.trees import Trees, fit_trees
from vrgcn.graph.graph import Graph
from vrgcn.inference.predict import predict
from vrgcn.tasks import find_task

pytest.importorskip("sklearn")
BOOSTERS = {"sklearn": ScikitBooster, "lightgbm": LightBooster}


@pytest.fixture(params=BOOSTERS)
def library(request, monkeypatch) -> str:
    """Trees are grown by this one, whatever else is installed."""
    pytest.importorskip(request.param)
    monkeypatch.setattr(module, "find_spec", lambda name: request.param == name or None)
    return request.param


def score(model: Trees, graph: Graph) -> float:
    assert graph.labels is not None
    outputs = predict(model, graph)[graph.test]
    return find_task(graph.task).find_metric().compute(outputs, graph.labels[graph.test])


@pytest.mark.parametrize("classes", [0, 2, 4])
def test_trees_as_tensors_say_what_the_library_says(library: str, classes: int) -> None:
    generator = np.random.default_rng(0)
    rows = generator.normal(size=(500, 5)).astype(np.float32)
    rows[:, 3] = np.round(rows[:, 3])  # thresholds between equal values
    targets = (rows[:, 0] * rows[:, 1] + rows[:, 3] > 0).astype(int) + (rows[:, 2] > 0.5) * 2
    targets = rows[:, 0] * rows[:, 3] if not classes else targets % classes
    booster = BOOSTERS[library](rows, targets, classes, 0)
    booster.grow(20)
    booster.grow(40)
    forest = booster.forest()
    rounds, width, nodes = forest.feature.shape
    assert (rounds, width) == (40, classes if classes > 2 else 1)
    model = Trees(5, width, rounds=rounds, nodes=nodes, depth=forest.depth, hops=0)
    model.inputs.scale.data.fill_(1.0)
    model.fill("threshold", rounded_down(forest.threshold, torch.float32))
    model.fill("value", forest.value.float())
    model.fill("start", forest.start.float())
    model.feature, model.branches = forest.feature.int(), forest.branches.int()
    model.check_tensors()
    other = generator.normal(size=(300, 5)).astype(np.float32)
    other[:100] = rows[:100]
    outputs = model(torch.from_numpy(other), lambda h: h)
    np.testing.assert_allclose(outputs.numpy(), booster.raw(other), atol=1e-5, rtol=1e-5)
    if library == "sklearn" and classes:
        wanted = booster.model.predict_proba(other)
        both = outputs if classes > 2 else torch.cat([torch.zeros_like(outputs), outputs], 1)
        np.testing.assert_allclose(both.softmax(1).numpy(), wanted, atol=1e-5)


def test_trees_fit_the_median_if_the_metric_is_the_absolute_error(library: str) -> None:
    labels = torch.arange(240) % 5
    graph = small("regression", labels=torch.where(labels == 0, 1000.0, 0.0).double())
    graph = graph.replace(features=torch.zeros_like(graph.features))  # nothing to tell apart
    metrics = find_task("regression").find_metric
    share = graph.labels[graph.train].mean()
    outputs = {name: fit_trees(Problem.of(graph, metrics(name)), 0) for name in ("mae", "rmse")}
    guessed = {name: predict(model, graph)[graph.val].mean() for name, model in outputs.items()}
    assert abs(guessed["mae"]) < 1  # four of five numbers are 0
    assert guessed["rmse"] == pytest.approx(float(share), rel=0.01)


@pytest.mark.parametrize("task", TASKS)
def test_two_hops_tell_what_own_features_do_not(library: str, task: str) -> None:
    graph = small(task, nodes=600)
    metric = find_task(task).find_metric()
    alone, two = (score(fit_trees(Problem.of(graph), hops), graph) for hops in (0, 2))
    assert metric.better(two, alone)
    assert two < 5 if metric.error else two > 0.85


def test_the_outputs_on_validation_nodes_are_those_that_were_scored(library: str) -> None:
    graph, seen = small("regression"), []
    problem = Problem.of(graph)

    def score(outputs: torch.Tensor) -> float:
        seen.append(outputs)
        return [5.0, 3.0, 4.0, 4.0][len(seen) - 1]

    model = fit_trees(Problem(**vars(problem) | {"score": score}), 2)
    assert len(seen) == 4  # the second is the best, and two more were looked at
    assert model.arguments["rounds"] == 2 * module._ROUND
    torch.testing.assert_close(predict(model, graph)[graph.val], seen[1], rtol=1e-6, atol=1e-4)


def test_a_class_without_training_nodes_is_never_predicted(library: str) -> None:
    graph = small(classes=4, nodes=400)
    assert graph.labels is not None
    kept = graph.train[graph.labels[graph.train] != 1]
    fewer = graph.with_splits({"train": kept, "val": graph.val, "test": graph.test})
    outputs = predict(fit_trees(Problem.of(fewer), 2), fewer)
    assert set(outputs.argmax(1).tolist()) == {0, 2, 3}
    two = kept[graph.labels[kept] != 2]
    fewer = graph.with_splits({"train": two, "val": graph.val, "test": graph.test})
    outputs = predict(fit_trees(Problem.of(fewer), 2), fewer)
    assert set(outputs.argmax(1).tolist()) == {0, 3}
    one = two[graph.labels[two] == 0]
    fewer = graph.with_splits({"train": one, "val": graph.val})
    with refused():
        fit_trees(Problem.of(fewer), 0)


def test_labels_of_other_than_training_nodes_reach_nothing_but_the_choice(monkeypatch) -> None:
    monkeypatch.setattr(module, "_ROUNDS", module._ROUND)
    graph = small()
    assert graph.labels is not None
    other = graph.labels.clone()
    for nodes in (graph.val, graph.test):
        other[nodes] = 2 - other[nodes]
    fitted = [fit_trees(Problem.of(g), 2) for g in (graph, small(labels=other))]
    first, second = (model.state_dict() for model in fitted)
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_labels_without_sense_are_not_learned(library: str) -> None:
    generator = torch.Generator().manual_seed(0)
    graph = small(labels=torch.randint(0, 3, (240,), generator=generator))
    assert score(fit_trees(Problem.of(graph), 2), graph) < 0.5


def test_a_class_that_all_training_nodes_have_or_none_is_constant(library: str) -> None:
    graph = small("multilabel")
    assert graph.labels is not None
    labels = torch.cat([graph.labels, torch.ones(240, 1), torch.zeros(240, 1)], dim=1)
    graph = small("multilabel", labels=labels)
    outputs = predict(fit_trees(Problem.of(graph), 2), graph)
    assert (outputs[:, 2] > 10).all()
    assert (outputs[:, 3] < -10).all()


def test_thresholds_are_rounded_so_that_the_same_rows_go_left() -> None:
    values = torch.tensor([0.1, 1 / 3, -1 / 3, 0.5, 1e-35], dtype=torch.float64)
    near = rounded_down(values, torch.float32)
    assert (near.double() <= values).all()
    above = torch.nextafter(near, torch.full_like(near, torch.inf))
    assert (above.double() > values).all()
    assert torch.equal(rounded_down(values, torch.float64), values)


def test_another_library_is_taken_where_lightgbm_is_missing(monkeypatch) -> None:
    asked: list[str] = []

    class Told(ScikitBooster):
        def __init__(self, *given) -> None:
            asked.append("sklearn")
            super().__init__(*given)

    monkeypatch.setitem(sys.modules, "lightgbm", ModuleType("lightgbm"))
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    monkeypatch.setattr(module, "ScikitBooster", Told)
    fit_trees(Problem.of(small()), 0)
    assert asked == ["sklearn"]
