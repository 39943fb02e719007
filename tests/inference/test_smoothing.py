"""Correct & Smooth around any model: the formula, files, other graphs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
import torch
from torch import Tensor, nn

from tests.baselines.problems import TASKS, small
from tests.inference.test_model_file import change
from tests.messages import refused
from vrgcn.baselines import Problem
from vrgcn.graph.graph import Graph
from vrgcn.graph.names import Names
from vrgcn.graph.propagation import mean
from vrgcn.inference.average import Average
from vrgcn.inference.choose_smoothing import choose_smoothing, smoothed
from vrgcn.inference.embed import embeddings
from vrgcn.inference.predict import predict
from vrgcn.inference.saved import SavedModel, load_model, save_model
from vrgcn.inference.smoothing import STEPS, Smoothing
from vrgcn.models.models import GCN, MLP, GraphSAGE
from vrgcn.runs.fit import fit
from vrgcn.tasks import find_task
from vrgcn.training.config import TrainConfig


def trained(graph: Graph, kind: type[nn.Module] = MLP, epochs: int = 5) -> SavedModel:
    torch.manual_seed(0)
    outputs = find_task(graph.task).outputs(graph.num_classes)
    model = kind(graph.num_features, 8, outputs)
    fit(model, graph, TrainConfig(epochs=epochs, estimator="exact"))
    return SavedModel.of(model)


def score(graph: Graph, outputs: Tensor, split: str = "test") -> float:
    assert graph.labels is not None
    nodes = graph.split(split)
    metric = find_task(graph.task).find_metric()
    return metric.compute(outputs[nodes], graph.labels[nodes])


def always(saved: SavedModel, graph: Graph) -> SavedModel:
    return smoothed(saved, Problem.of(graph), always=True)


@pytest.mark.parametrize("autoscale", [True, False])
def test_outputs_are_the_formula_of_dense_matrices(autoscale: bool) -> None:
    graph = small()
    assert graph.labels is not None
    saved = trained(graph)
    chosen = always(saved, graph).smoothing
    assert chosen is not None
    found = replace(chosen, correct=0.9, smooth=0.5, autoscale=autoscale)
    S = predict(saved, graph).softmax(1)
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
    outputs = predict(saved.then(found), graph)
    torch.testing.assert_close(outputs.softmax(1).float(), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("kind", [MLP, GCN, GraphSAGE])
def test_a_saved_model_predicts_the_same_however_it_is_asked(
    kind: type[nn.Module], task: str, tmp_path: Path
) -> None:
    graph = small(task)
    saved = always(trained(graph, kind, 2), graph)
    outputs = predict(saved, graph)
    save_model(saved, tmp_path / "m.safetensors")
    loaded = load_model(tmp_path / "m.safetensors")
    assert torch.equal(loaded.predict(graph), outputs)
    some = torch.tensor([5, 200, 3, 5])
    torch.testing.assert_close(loaded.predict(graph, some), outputs[some], rtol=1e-4, atol=1e-4)
    (tmp_path / "tables").mkdir()
    assert torch.equal(predict(loaded, graph, directory=tmp_path / "tables"), outputs)
    assert torch.equal(embeddings(loaded, graph, layer=-1), outputs)
    if kind is MLP:  # nothing but outputs
        return
    inside = embeddings(loaded, graph, layer=0)
    assert torch.equal(inside, embeddings(loaded.before(Smoothing), graph, layer=0))


@pytest.mark.parametrize("task", TASKS)
def test_it_is_better_than_a_model_of_features_alone(task: str) -> None:
    graph = small(task)
    saved = trained(graph)
    alone, found = (score(graph, predict(model, graph)) for model in (saved, always(saved, graph)))
    assert find_task(task).find_metric().better(found, alone)


@pytest.mark.parametrize("task", TASKS)
def test_a_node_without_neighbours_keeps_its_prediction(task: str) -> None:
    whole = small(task)
    assert whole.labels is not None
    ends = whole.edge_index()
    node = int(whole.test[0])
    kept = ends[:, (ends != node).all(0)]
    graph = Graph(
        kept, whole.features, whole.labels, task=task,
        train=whole.train, val=whole.val, test=whole.test,
    )  # fmt: skip
    saved = trained(graph)
    found = predict(always(saved, graph), graph, [node])
    torch.testing.assert_close(
        find_task(task).shares(found), find_task(task).shares(predict(saved, graph, [node]))
    )


def test_an_average_is_smoothed_and_kept_in_its_file(tmp_path: Path) -> None:
    graph = small()
    members = {"mlp": always(trained(graph), graph), "gcn": trained(graph, GCN)}
    average = always(Average.of_members(members, {"mlp": 1, "gcn": 2}), graph)
    assert average.smoothing is not None
    outputs = predict(average, graph)
    assert not torch.equal(outputs, predict(average.before(Smoothing), graph))
    save_model(average, tmp_path / "m.safetensors")
    assert torch.equal(predict(load_model(tmp_path / "m.safetensors"), graph), outputs)


@pytest.mark.parametrize("numbers", [True, False])
def test_labels_follow_their_nodes_to_another_graph(numbers: bool, tmp_path: Path) -> None:
    graph = small()
    assert graph.labels is not None
    save_model(always(trained(graph), graph), tmp_path / "m.safetensors")
    outputs = load_model(tmp_path / "m.safetensors").predict(graph)
    order = torch.randperm(240, generator=torch.Generator().manual_seed(3))
    ids = order.tolist() if numbers else [str(node) for node in order.tolist()]
    moved = Graph(
        order.argsort()[graph.edge_index()],
        graph.features[order],
        graph.labels[order],
        names=Names(pa.array(ids)),
    )
    found = load_model(tmp_path / "m.safetensors").predict(moved)
    torch.testing.assert_close(found, outputs[order], rtol=1e-4, atol=1e-4)


def test_unknown_nodes_have_neither_errors_nor_labels() -> None:
    graph = small()
    saved = always(trained(graph), graph)
    strangers = replace_names(graph, [f"new {node}" for node in range(240)])
    assert saved.smoothing is not None
    rows, _ = saved.smoothing.places(strangers)
    assert not len(rows)
    corrected = saved.before(Smoothing).then(replace(saved.smoothing, smooth=0.0))
    found = predict(corrected, strangers).softmax(1)
    plain = predict(saved.before(Smoothing), strangers).softmax(1)
    torch.testing.assert_close(found, plain.double())


def replace_names(graph: Graph, ids: list[str]) -> Graph:
    return Graph(graph.edge_index(), graph.features, graph.labels, names=Names(pa.array(ids)))


def test_labels_without_sense_are_not_learned() -> None:
    generator = torch.Generator().manual_seed(0)
    graph = small(labels=torch.randint(0, 3, (240,), generator=generator))
    found = choose_smoothing(trained(graph, GraphSAGE, 20), Problem.of(graph), always=True)
    assert found.val < 0.5
    assert score(graph, predict(always(trained(graph, GraphSAGE, 20), graph), graph)) < 0.5


def test_labels_of_test_nodes_change_nothing_and_of_validation_nodes_the_choice_alone() -> None:
    graph = small()
    assert graph.labels is not None
    saved = trained(graph)
    tested, validated = graph.labels.clone(), graph.labels.clone()
    tested[graph.test] = 2 - tested[graph.test]
    validated[graph.val] = 2 - validated[graph.val]
    one, other = (always(saved, g).smoothing for g in (graph, small(labels=tested)))
    assert one is not None
    assert other is not None
    assert one.settings == other.settings
    same_tensors(one, other)
    third = always(saved, small(labels=validated)).smoothing
    assert third is not None
    same_tensors(one, third)


def same_tensors(one: Smoothing, other: Smoothing) -> None:
    assert one.tensors.keys() == other.tensors.keys()
    assert all(torch.equal(tensor, other.tensors[name]) for name, tensor in one.tensors.items())


def test_a_model_that_is_better_alone_is_left_alone() -> None:
    """Neighbours are of other classes: whatever is spread is wrong."""
    ends = torch.stack([torch.arange(240), (torch.arange(240) + 1) % 240])
    whole = small()
    graph = Graph(
        ends, whole.features, whole.labels, undirected=True,
        train=whole.train, val=whole.val, test=whole.test,
    )  # fmt: skip
    saved = trained(graph, epochs=30)
    found = choose_smoothing(saved, Problem.of(graph))
    assert found.smoothing is None
    assert found.val == found.alone == score(graph, predict(saved, graph), "val")
    assert choose_smoothing(saved, Problem.of(graph), always=True).smoothing is not None


def test_a_graph_that_takes_too_long_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vrgcn.inference.choose_smoothing._WORK", 1.0)
    graph = small()
    found = choose_smoothing(trained(graph), Problem.of(graph))
    assert found.smoothing is None
    assert found.reason == "the graph is too large to try it in some seconds"


BROKEN = {
    "a share": {"stage": {"correct": 1.0}},
    "half of it": {"stage": {"autoscale": "absent"}},
    "more": {"stage": {"steps": 3}},
    "unknown": {"stage": {"name": "soothed"}},
    "twice exact": {"stage": {"name": "exact"}},
    "no labels": {"1.labels": None},
    "fewer": {"1.errors": torch.ones(3, 3)},
    "narrow": {"1.errors": torch.ones(80, 2), "1.labels": torch.ones(80, 2)},
    "no number": {"1.errors": torch.full((80, 3), torch.nan)},
    "a tensor more": {"1.extra": torch.ones(3)},
}


@pytest.mark.parametrize("changes", BROKEN.values(), ids=list(BROKEN))
def test_a_file_that_cannot_be_is_refused(changes: dict, tmp_path: Path) -> None:
    graph = small()
    path = tmp_path / "m.safetensors"
    save_model(always(trained(graph), graph), path)
    change(path, place=1, **changes)
    with refused():
        load_model(path)
