"""Settings that depend on the graph: what auto and None stand for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.baselines.problems import small
from vrgcn import Graph, train
from vrgcn.models.config import ModelConfig
from vrgcn.runs import auto_settings
from vrgcn.runs.auto_settings import few_labels, settle, training_neighbours
from vrgcn.runs.pilots import on_its_way
from vrgcn.runs.settings import USUAL_MODEL, USUAL_TRAIN, Settings
from vrgcn.tasks.metrics import METRICS
from vrgcn.training.config import TrainConfig


def settled(graph: Graph, **changes: Any) -> Settings:
    return Settings().changed({"diagnostics": 0, **changes}).settled(graph)


def few(nodes: int = 240, **given: Any) -> Graph:
    """Two training nodes of each class."""
    graph = small(nodes=nodes)
    assert graph.labels is not None
    kept = torch.cat([graph.train[graph.labels[graph.train] == k][:2] for k in range(3)])
    return small(nodes=nodes, train=kept, **given)


def test_explicit_settings_stay_as_they_are() -> None:
    given = {"model": "gcn", "dropout": 0.3, "learned_rows": True, "weight_decay": 0.1}
    found = settled(few(), **given, patience=7)
    assert {name: getattr(found.model, name) for name in ("model", "dropout")} == {
        "model": "gcn",
        "dropout": 0.3,
    }
    assert found.model.learned_rows
    assert found.model.norm == "auto"
    assert (found.train.weight_decay, found.train.patience) == (0.1, 7)
    assert settled(few(), patience=0).train.patience == 0


def test_settling_twice_changes_nothing() -> None:
    for graph in (small(), few()):
        once = settled(graph)
        assert once.settled(graph) == once


def test_without_a_run_the_library_has_its_usual_values() -> None:
    assert ModelConfig().settled() == ModelConfig()
    assert USUAL_MODEL.settled() == ModelConfig()


@pytest.mark.parametrize(("columns", "dropout"), [(99, 0.2), (100, 0.5)])
def test_few_columns_are_not_dropped_by_half(columns: int, dropout: float) -> None:
    graph = small().with_features(torch.ones(240, columns))
    assert settled(graph).model.dropout == dropout


def test_training_neighbours_of_validation_nodes_are_counted() -> None:
    graph = Graph(
        torch.tensor([[0, 1, 2, 3, 0], [3, 3, 4, 4, 4]]),
        torch.ones(5, 1),
        torch.zeros(5, dtype=torch.int64),
        train=[0, 1],
        val=[3, 4],
        num_classes=2,
        undirected=True,
    )
    assert training_neighbours(graph) == 1.5  # 0 and 1 of node 3, 0 of node 4


@pytest.mark.parametrize(("least", "rows"), [(0.0, True), (100.0, False)])
def test_rows_are_learned_where_training_neighbours_are_enough(
    monkeypatch: pytest.MonkeyPatch, least: float, rows: bool
) -> None:
    monkeypatch.setattr(auto_settings, "_NEIGHBOURS", least)
    monkeypatch.setattr(auto_settings, "_pilot", lambda *_: [0.5])
    assert settled(small()).model.learned_rows is rows
    for changes in ({"model": "mlp"}, {"inductive": True}, {"memory": "disk"}):
        assert settled(small(), **changes).model.learned_rows is False


@pytest.mark.parametrize(
    ("changes", "patience"),
    [
        ({"batch_size": 1}, 10),  # 80 steps per epoch
        ({"batch_size": 20}, 25),
        ({}, 100),
        ({"evaluate_every": 5}, 20),
        ({"schedule": "cosine"}, 0),
        ({"select": "last"}, 0),
    ],
)
def test_patience_is_ten_evaluations_or_a_hundred_steps(
    monkeypatch: pytest.MonkeyPatch, changes: dict, patience: int
) -> None:
    monkeypatch.setattr(auto_settings, "_pilot", lambda *_: [0.5])
    assert settled(small(), **changes).train.patience == patience
    assert settled(small(val=None)).train.patience == 0


def test_labels_are_few_by_class_and_by_share() -> None:
    assert few_labels(few())
    assert not few_labels(small())  # a third of the nodes
    for task in ("multilabel", "regression"):
        assert not few_labels(small(task, train=[0], val=None, test=None))


@pytest.mark.parametrize(("scores", "model"), [((0.8, 0.79), "gcn"), ((0.9, 0.79), "graphsage")])
def test_few_labels_take_the_gcn_unless_graphsage_is_clearly_better(
    monkeypatch: pytest.MonkeyPatch, scores: tuple[float, float], model: str
) -> None:
    by_model = dict(zip(("graphsage", "gcn"), scores, strict=True))
    monkeypatch.setattr(auto_settings, "_pilot", lambda m, t, g, *_: [by_model[m.model]])
    found, config, note = settle(USUAL_MODEL, TrainConfig(), few())
    assert found.model == model
    assert (found.norm, config.weight_decay) == (
        ("none", 5e-4) if model == "gcn" else ("auto", 0.0)
    )
    assert note is not None
    assert f"{model} was chosen" in note
    assert settle(USUAL_MODEL, TrainConfig(), small())[2] is None  # 30 epochs are too few


@pytest.mark.parametrize(
    ("scores", "model"),
    [
        ((0.8, 0.804, 0.804), ("graphsage", 2, 128, 0.2, 0.01)),
        ((0.8, 0.81, 0.79), ("graphsage", 3, 256, 0.0, 0.01)),
        ((0.8, 0.81, 0.811), ("residual", 4, 128, 0.2, 0.003)),
    ],
)
def test_with_many_labels_another_model_is_taken_if_it_is_better(
    monkeypatch: pytest.MonkeyPatch, scores: tuple[float, ...], model: tuple[Any, ...]
) -> None:
    by_layers = dict(zip((2, 3, 4), scores, strict=True))
    monkeypatch.setattr(auto_settings, "_pilot", lambda m, t, g, *_: [by_layers[m.layers]])
    found, config, note = settle(USUAL_MODEL, USUAL_TRAIN, small())
    rate = config.learning_rate
    assert (found.model, found.layers, found.hidden, found.dropout, rate) == model
    assert note is not None
    assert "0.8000 by graphsage" in note


def test_an_error_has_to_be_smaller_by_two_per_cent(monkeypatch: pytest.MonkeyPatch) -> None:
    for error, layers in ((1.97, 2), (1.95, 4)):
        by_layers = {2: 2.0, 3: 2.0, 4: error}
        monkeypatch.setattr(
            auto_settings, "_pilot", lambda m, t, g, *_, all=by_layers: [all[m.layers]]
        )
        found, _, _ = settle(USUAL_MODEL, USUAL_TRAIN, small("regression"))
        assert found.layers == layers


@pytest.mark.parametrize(
    "given",
    [
        {"model": "graphsage"},
        {"hidden": 64},
        {"layers": 3},
        {"dropout": 0.1},
        {"learning_rate": 0.02},
        {"epochs": 63},
        {"memory": "disk"},
        {"norm": "batch"},
    ],
)
def test_models_are_not_compared_where_one_was_chosen_or_the_run_is_short(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, Any]
) -> None:
    def refuse(*_: Any) -> float:
        raise AssertionError("a model was trained")

    monkeypatch.setattr(auto_settings, "_pilot", refuse)
    assert settled(small(), **given).model.model == "graphsage"


def test_a_model_far_behind_the_usual_one_is_trained_for_half_as_long() -> None:
    model, config = USUAL_MODEL.settled(), TrainConfig(diagnostics=0)
    usual = auto_settings._pilot(model, config, small(), 6)
    assert len(usual) == 6
    assert usual == sorted(usual)
    better = [score + 0.5 for score in usual]
    assert len(auto_settings._pilot(model, config, small(), 6, better)) == 3
    lower = [score - 0.1 for score in usual]  # it would be taken at once
    assert auto_settings._pilot(model, config, small(), 6, lower) == usual


@pytest.mark.parametrize(
    ("best", "goes_on"),
    [
        ([0.5, 0.6, 0.7], True),  # too few to tell
        ([0.5, 0.6, 0.7, 0.73], True),  # 0.73 and once more what was gained since 0.5
        ([0.5, 0.7, 0.7, 0.7, 0.73], False),
        ([0.5, 0.9, 0.9, 0.9, 0.9], True),
        ([0.5, 0.8, 0.8, 0.8, 0.8], False),  # as good as needed, and no better
    ],
)
def test_a_short_training_ends_where_its_last_gain_would_not_suffice_again(
    best: list[float], goes_on: bool
) -> None:
    assert on_its_way(METRICS["accuracy"], best, 0.8) is goes_on


def test_an_error_is_on_its_way_down() -> None:
    rmse = METRICS["rmse"]
    assert on_its_way(rmse, [1.2, 1.1, 1.0, 0.9], 0.8)
    assert not on_its_way(rmse, [1.2, 1.0, 0.95, 0.92, 0.9], 0.8)


def test_models_are_not_compared_by_a_few_validation_nodes() -> None:
    graph = small()
    assert settle(USUAL_MODEL, USUAL_TRAIN, graph)[2] is not None
    few = graph.with_splits({"train": graph.train, "val": graph.val[:49], "test": graph.test})
    assert settle(USUAL_MODEL, USUAL_TRAIN, few)[2] is None


def test_models_are_not_compared_on_a_large_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auto_settings, "_WORK", 100.0)
    assert settle(USUAL_MODEL, USUAL_TRAIN, small())[2] is None


def test_labels_of_test_nodes_do_not_reach_the_choice() -> None:
    graph = few()
    assert graph.labels is not None
    other = graph.labels.clone()
    other[graph.test] = 2 - other[graph.test]
    notes: list[str] = []
    for g in (graph, few(labels=other)):
        Settings().changed({"diagnostics": 0}).settled(g, notes.append)
    assert len(notes) == 2
    assert notes[0] == notes[1]


def test_a_run_keeps_settled_values_and_resumes_with_them(tmp_path: Path) -> None:
    given: dict[str, Any] = {"hidden": 8, "diagnostics": 0, "smooth": "never"}
    run = train(few(), out=tmp_path / "run", epochs=3, **given)
    assert run.config["model"] in ("gcn", "graphsage")
    assert run.config["dropout"] == 0.2
    assert run.config["learned_rows"] is False
    assert run.config["patience"] == 100
    longer = train(few(), out=tmp_path / "run", resume=True, epochs=6)
    once = train(few(), out=tmp_path / "once", epochs=6, **given)
    assert torch.equal(longer.predict(), once.predict())
