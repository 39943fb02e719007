"""Baselines in model files: they come back whole, and what cannot be is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
import torch

from tests.baselines.problems import TASKS, small
from tests.inference.test_model_file import change
from tests.messages import refused
from vrgcn.baselines import BASELINES, RECIPES, Problem
from vrgcn.graph.graph import Graph
from vrgcn.graph.names import Names
from vrgcn.graph.scaling import scale_graph
from vrgcn.inference.embed import embeddings
from vrgcn.inference.fitting import fit_recipe
from vrgcn.inference.predict import predict
from vrgcn.inference.saved import load_model, save_model

pytest.importorskip("sklearn")


@pytest.fixture(
    params=[
        *("linear", "linear-2", "trees-2", "trees-tables", "mlp-2", "mlp-tables"),
        *("labels", "smoothed", "smoothed-mlp", "link"),
    ]
)
def recipe(request) -> str:
    return request.param


def saved_as(path: Path, recipe: str, task: str = "classes") -> tuple[torch.Tensor, Path]:
    """Outputs of a fitted baseline, and its file."""
    scaled, _ = scale_graph(small(task), "standard")
    saved = fit_recipe(RECIPES[recipe], Problem.of(scaled))
    save_model(saved, path / "m.safetensors")
    return predict(saved, scaled), path / "m.safetensors"


@pytest.mark.parametrize("task", TASKS)
def test_a_baseline_comes_back_whole_and_scales_features_itself(
    recipe: str, task: str, tmp_path: Path
) -> None:
    outputs, path = saved_as(tmp_path, recipe, task)
    loaded = load_model(path)
    assert loaded.task == task
    assert loaded.propagation == "adjacency"
    assert loaded.num_features == 6
    assert type(loaded.model) in BASELINES.values()
    graph = small(task)
    assert torch.equal(loaded.predict(graph), outputs)
    some = torch.tensor([5, 200, 3])
    torch.testing.assert_close(loaded.predict(graph, some), outputs[some])
    assert torch.equal(embeddings(loaded, graph, layer=-1), outputs)


TREES = {
    "an index": {"model.feature": torch.full((20, 3, 9), 99).int()},
    "no class": {"arguments": {"classes": 4}},
    "more nodes": {"arguments": {"nodes": 10**12}},
    "no depth": {"arguments": {"depth": -1}},
    "an argument": {"arguments": {"hidden": 8}},
    "a tensor": {"model.extra": torch.ones(1)},
    "its matrix": {"stage": {"propagation": None}},
    "a graph model": {"stage": {"model": "gcn"}},
}


@pytest.mark.parametrize("changes", TREES.values(), ids=list(TREES))
def test_a_file_of_trees_that_cannot_be_is_refused(changes: dict, tmp_path: Path) -> None:
    _, path = saved_as(tmp_path, "trees-2")
    change(path, **changes)
    with refused():
        load_model(path)


@pytest.mark.parametrize("name", ["feature", "branches"])
def test_trees_that_point_outside_are_refused(name: str, tmp_path: Path) -> None:
    _, path = saved_as(tmp_path, "trees-2")
    values = load_model(path).model.get_buffer(name)
    for wrong in (
        torch.full_like(values, 10_000),
        torch.full_like(values, -1),
        torch.zeros_like(values).long(),
    ):
        change(path, **{f"model.{name}": wrong})
        with refused():
            load_model(path)


def test_a_recipe_whose_packages_are_missing_is_not_available(monkeypatch) -> None:
    assert all(recipe.available for recipe in RECIPES.values())
    monkeypatch.setattr("vrgcn.baselines.find_spec", lambda name: None)
    without = [name for name, recipe in RECIPES.items() if recipe.available]
    assert set(RECIPES) - set(without) == {"trees", "trees-2", "trees-tables", "smoothed-trees"}


@pytest.mark.parametrize("recipe", ["linear-2", "labels", "link", "trees-2"])
def test_labels_of_other_than_training_nodes_reach_nothing_but_the_choice(recipe: str) -> None:
    """With one score for everything the choice is the same, and so is every bit."""
    graph = small()
    assert graph.labels is not None
    other = graph.labels.clone()
    for nodes in (graph.val, graph.test):
        other[nodes] = 2 - other[nodes]
    fitted = [
        RECIPES[recipe].fit(replace(Problem.of(g), score=lambda outputs: 0.5))
        for g in (graph, small(labels=other))
    ]
    first, second = (model.state_dict() for model in fitted)
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("recipe", ["labels", "smoothed", "link", "mlp-tables", "trees-tables"])
def test_rows_of_nodes_follow_them_to_another_graph(recipe: str, tmp_path: Path) -> None:
    outputs, path = saved_as(tmp_path, recipe)
    graph = small()
    order = torch.randperm(240, generator=torch.Generator().manual_seed(3))
    place = order.argsort()
    names = Names(pa.array([str(node) for node in order.tolist()]))
    moved = Graph(
        place[graph.edge_index()], graph.features[order], graph.labels[order], names=names
    )
    found = load_model(path).predict(moved)
    torch.testing.assert_close(found, outputs[order], rtol=1e-4, atol=1e-4)
