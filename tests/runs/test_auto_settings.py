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
from vrgcn.runs.auto_settings import few_labels, training_neighbours
from vrgcn.runs.settings import USUAL_MODEL, Settings


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
    assert USUAL_MODEL.settled() == ModelConfig(linear_path="auto")


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
def test_patience_is_ten_evaluations_or_a_hundred_steps(changes: dict, patience: int) -> None:
    assert settled(small(), **changes).train.patience == patience
    assert settled(small(val=None)).train.patience == 0


def test_labels_over_relations_are_waited_for_for_thirty_steps() -> None:
    ends = torch.randint(40, (2, 90), generator=torch.Generator().manual_seed(0))
    nodes = torch.arange(40)
    graph = Graph.from_kinds(
        {"paper": 40},
        {("paper", "cites", "paper"): ends},
        {"paper": nodes % 3},
        train=nodes[:20],
        val=nodes[20:],
    )
    assert settled(graph).train.patience == 30
    assert settled(graph, batch_size=5).train.patience == 10


def test_labels_are_few_by_class_and_by_share() -> None:
    assert few_labels(few())
    assert not few_labels(small())  # a third of the nodes
    for task in ("multilabel", "regression"):
        assert not few_labels(small(task, train=[0], val=None, test=None))


def test_a_run_keeps_settled_values_and_resumes_with_them(tmp_path: Path) -> None:
    given: dict[str, Any] = {"hidden": 8, "norm": "layer", "diagnostics": 0, "smooth": "never"}
    run = train(few(), out=tmp_path / "run", epochs=3, **given)
    assert run.config["model"] == "graphsage"
    assert run.config["dropout"] == 0.2
    assert run.config["learned_rows"] is False
    assert run.config["patience"] == 100
    longer = train(few(), out=tmp_path / "run", resume=True, epochs=6)
    once = train(few(), out=tmp_path / "once", epochs=6, **given)
    assert torch.equal(longer.predict(), once.predict())
