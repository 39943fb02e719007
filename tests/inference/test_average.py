"""Averages: the mean of their members' probabilities or numbers, on disk and in every size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.baselines.problems import TASKS, small
from tests.inference.test_model_file import change
from tests.messages import refused
from vrgcn.baselines import Problem
from vrgcn.baselines.logistic import fit_logistic
from vrgcn.graph.graph import Graph
from vrgcn.graph.scaling import TrainedOn, note_trained_on, scale_graph
from vrgcn.inference import MODEL
from vrgcn.inference.average import Average
from vrgcn.inference.embed import embeddings
from vrgcn.inference.predict import exact_sweeps, predict
from vrgcn.inference.predictions import predictions
from vrgcn.inference.saved import SavedModel, load_model, save_model
from vrgcn.models.models import GCN
from vrgcn.runs.fit import fit
from vrgcn.tasks import find_task
from vrgcn.training.config import TrainConfig

WEIGHTS = {"network": 0.25, "linear": 0.75}


def members(graph: Graph) -> dict[str, SavedModel]:
    """A network on standardised features, a linear model on features as they are."""
    scaled, _ = scale_graph(graph, "standard")
    outputs = find_task(graph.task).outputs(graph.num_classes)
    torch.manual_seed(0)
    network = GCN(graph.num_features, 8, outputs)
    fit(network, scaled, TrainConfig(epochs=3))
    linear = fit_logistic(Problem.of(graph), 1)
    note_trained_on(linear, TrainedOn.of(graph))
    return {"network": SavedModel.of(network), "linear": SavedModel.of(linear)}


def wanted(found: dict[str, SavedModel], graph: Graph) -> torch.Tensor:
    task = find_task(graph.task)
    outputs = {name: member.predict(graph).double() for name, member in found.items()}
    if not task.has_classes:
        return sum(WEIGHTS[name] * outputs[name] for name in WEIGHTS)
    return sum(WEIGHTS[name] * task.probabilities(outputs[name]) for name in WEIGHTS)


def shown(average: Average, outputs: torch.Tensor) -> torch.Tensor:
    task = find_task(average.task)
    return task.probabilities(outputs) if task.has_classes else outputs


@pytest.mark.parametrize("task", TASKS)
def test_it_is_the_mean_of_its_members_however_it_is_asked(task: str, tmp_path: Path) -> None:
    graph = small(task)
    found = members(graph)
    average = Average.of_members(found, WEIGHTS)
    outputs = average.predict(graph)
    assert torch.isfinite(outputs).all()
    torch.testing.assert_close(shown(average, outputs), wanted(found, graph))
    some = torch.tensor([7, 3, 230])
    torch.testing.assert_close(predict(average, graph, some), outputs[some], rtol=1e-5, atol=1e-5)
    on_disk = predict(average, graph, directory=tmp_path)
    torch.testing.assert_close(on_disk, outputs)
    table = predictions(average, graph).to_arrow()
    assert table.num_rows == 240
    assert average.task == task
    assert (average.num_features, average.num_classes) == (6, found["network"].num_classes)


@pytest.mark.parametrize("task", TASKS)
def test_it_comes_back_from_its_file_in_the_same_bits(task: str, tmp_path: Path) -> None:
    graph = small(task)
    average = Average.of_members(members(graph), WEIGHTS, best=str(tmp_path / "best"))
    (tmp_path / "average").mkdir()
    save_model(average, tmp_path / "average" / MODEL)
    loaded = load_model(tmp_path / "average")
    assert isinstance(loaded, Average)
    assert (loaded.weights, loaded.best, loaded.task) == (average.weights, average.best, task)
    assert list(loaded.members) == ["network", "linear"]
    assert torch.equal(loaded.predict(graph), average.predict(graph))


def test_members_without_weight_are_left_out_and_weights_add_up_to_one() -> None:
    found = members(small())
    average = Average.of_members(found, {"network": 0.0, "linear": 3})
    assert (list(average.members), average.weights) == (["linear"], (1.0,))
    with refused():
        Average.of_members(found, {"network": 0.0})


def test_members_that_predict_something_else_are_refused() -> None:
    found = members(small()) | {"other": members(small("multilabel"))["linear"]}
    with refused():
        Average.of_members(found, {"network": 1.0, "other": 1.0})


def test_it_has_no_layers_and_names_a_model_that_has() -> None:
    graph = small()
    average = Average.of_members(members(graph), WEIGHTS, best="runs/tuned/best")
    for layer in (-2, -1):
        with refused():
            embeddings(average, graph, layer)
    with refused():
        exact_sweeps(average, graph, propagation="gcn")


def test_progress_is_told_in_the_units_of_its_work() -> None:
    graph, told = small(), []
    sweeps = exact_sweeps(Average.of_members(members(graph), WEIGHTS), graph, on_chunk=told.append)
    chunks = list(sweeps.stream(torch.arange(50)))
    assert torch.cat([nodes for nodes, _ in chunks]).tolist() == list(range(50))
    assert sum(told) == sweeps.work(torch.arange(50)) == 100


def test_the_best_is_found_beside_it_after_both_are_moved(tmp_path: Path) -> None:
    (tmp_path / "one" / "average").mkdir(parents=True)
    best = tmp_path / "one" / "best"
    average = Average.of_members(members(small()), WEIGHTS, best=str(best))
    save_model(average, tmp_path / "one" / "average" / MODEL)
    (tmp_path / "one").rename(tmp_path / "two")
    loaded = load_model(tmp_path / "two" / "average")
    assert isinstance(loaded, Average)
    assert loaded.best == str(tmp_path / "two" / "best")


def test_an_average_can_be_a_member_of_another(tmp_path: Path) -> None:
    graph = small()
    found = members(graph)
    inner = Average.of_members(found, WEIGHTS)
    outer = Average.of_members(
        {"inner": inner, "linear": found["linear"]}, {"inner": 1, "linear": 1}
    )
    save_model(outer, tmp_path / MODEL)
    loaded = load_model(tmp_path)
    assert torch.equal(loaded.predict(graph), outer.predict(graph))
    shares = (inner.predict(graph).softmax(1) + found["linear"].predict(graph).softmax(1)) / 2
    torch.testing.assert_close(loaded.predict(graph).softmax(1), shares)


def _member(**entries: Any) -> dict[str, Any]:
    return {"name": "network", "weight": 1.0, "stages": [{"name": "exact"}]} | entries


BROKEN = {
    "no members": {"members": []},
    "an unknown entry": {"folder": "x"},
    "a nameless member": {"members": [_member(name=3)]},
    "a weight below 0": {"members": [_member(weight=-1.0)]},
    "no stages": {"members": [_member(stages=[])]},
    "one member less": {"members": [_member()]},
    "twice the same": {"members": "network"},
    "no model": {"members": [_member(), _member(name="b")]},
}


@pytest.mark.parametrize("changes", BROKEN.values(), ids=list(BROKEN))
def test_a_file_that_cannot_be_is_refused(changes: dict, tmp_path: Path) -> None:
    average = Average.of_members(members(small()), WEIGHTS)
    save_model(average, tmp_path / MODEL)
    if changes.get("members") == "network":
        entries, _ = average.written(tmp_path)
        changes = {"members": [each | {"name": "network"} for each in entries["members"]]}
    change(tmp_path / MODEL, stage=changes)
    with refused():
        load_model(tmp_path)
