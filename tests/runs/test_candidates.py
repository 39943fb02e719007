"""Candidates between which a race or a search chooses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from tests.baselines.problems import small
from tests.graph.timed import dated_graph
from tests.pairs.test_relations import BOUGHT
from tests.runs.test_auto_settings import few
from tests.runs.test_pair_candidates import bought, settings
from tests.targets.test_links import communities
from vrgcn.runs.candidates import candidates
from vrgcn.runs.settings import USUAL_MODEL, USUAL_TRAIN, Settings


def names(graph: Any, **given: Any) -> list[str]:
    found = Settings().changed({"diagnostics": 0, **given})
    return [each.name for each in candidates(found.model, found.train, graph)]


def test_with_many_labels_a_larger_and_a_deeper_model_stand_beside_the_usual_one() -> None:
    usual, larger, residual = candidates(USUAL_MODEL, USUAL_TRAIN, small())
    assert (usual.model.model, usual.model.layers, usual.gain) == ("graphsage", 2, 0.0)
    assert (larger.model.layers, larger.model.hidden, larger.model.dropout) == (3, 256, 0.0)
    assert (residual.model.model, residual.train.learning_rate) == ("residual", 0.003)
    assert larger.gain == residual.gain == 0.005
    assert {each.train.weight_decay for each in (usual, larger, residual)} == {0.0}


def test_with_few_labels_graphsage_has_to_beat_a_decayed_gcn_by_far() -> None:
    gcn, sage = candidates(USUAL_MODEL, USUAL_TRAIN, few())
    assert (gcn.model.model, gcn.model.norm, gcn.train.weight_decay) == ("gcn", "none", 5e-4)
    assert (sage.model.model, sage.model.norm, sage.train.weight_decay) == ("graphsage", "auto", 0)
    assert sage.gain == 0.02


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
def test_a_chosen_model_or_a_short_run_has_one_candidate(given: dict[str, Any]) -> None:
    assert names(small(), **given) == ["graphsage"]


def test_tables_on_disk_leave_the_first_candidate_only() -> None:
    """A race would keep the tables of all of them in memory."""
    assert names(few(), memory="disk") == ["gcn"]
    assert names(communities(), memory="disk", predict="edges") == ["gcn"]


def test_a_few_validation_nodes_tell_no_models_apart() -> None:
    graph = small()
    short = graph.with_splits({"train": graph.train, "val": graph.val[:49], "test": graph.test})
    assert (len(names(graph)), len(names(short))) == (3, 1)
    assert names(graph.with_splits({"train": graph.train})) == ["graphsage"]


def test_candidates_of_settled_settings_are_themselves() -> None:
    for graph in (small(), few()):
        for each in candidates(USUAL_MODEL, USUAL_TRAIN, graph):
            (again,) = candidates(each.model, each.train, graph)
            assert (again.model, again.train) == (each.model, each.train)


def test_labels_of_validation_and_test_nodes_have_no_part() -> None:
    graph = few()
    assert graph.labels is not None
    other = graph.labels.clone()
    held = torch.cat([graph.val, graph.test])
    other[held] = 2 - other[held]
    found = [candidates(USUAL_MODEL, USUAL_TRAIN, each) for each in (graph, few(labels=other))]
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("graph", "predict", "expected"),
    [
        (communities(), "edges", ["gcn", "gae", "lightgcn by lift"]),
        (bought(), BOUGHT, ["graphsage with learned rows", "lightgcn by lift", "gcn"]),
        (
            communities().with_features(torch.ones(120, 1)),
            "edges",
            ["lightgcn by lift", "gcn"],
        ),
    ],
)
def test_models_of_links_depend_on_what_nodes_have(
    graph: Any, predict: str, expected: list[str]
) -> None:
    found = settings(predict)
    there = candidates(found.model, found.train, graph)
    assert [each.name for each in there] == expected
    assert all(each.train.patience for each in there)
    short = replace(found.train, epochs=29)
    assert len(candidates(found.model, short, graph)) == 1


def test_rows_with_a_time_of_their_own_have_one_layer_unless_another_number_is_given() -> None:
    graph = dated_graph()
    [usual] = candidates(USUAL_MODEL, USUAL_TRAIN, graph)
    assert (usual.model.layers, usual.model.jumping) == (1, "cat")
    [three] = candidates(replace(USUAL_MODEL, layers=3), USUAL_TRAIN, graph)
    assert (three.model.layers, three.model.jumping) == (3, "none")
    [given] = candidates(replace(USUAL_MODEL, model="graphsage"), USUAL_TRAIN, graph)
    assert given.model.layers == 2
