"""Changes are plain values, checked completely before anything is applied."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import numpy as np
import pandas
import pytest
import torch

from tests.live.book import WIDTH, a_book
from vrgcn import GCN
from vrgcn.inference.saved import SavedModel
from vrgcn.live.changes import Changes
from vrgcn.live.live import Live


@pytest.fixture
def live() -> Live:
    torch.manual_seed(0)
    book = a_book(np.random.default_rng(0), undirected=True, weighted=True)
    model: Any = GCN(WIDTH, 5, 3, layer_norm=False).double()
    model.layers[0].linears[0].weight.data *= 100  # so that a large number overflows
    return Live(SavedModel(model, "gcn"), book.graph(), undirected=True)


def test_rows_may_be_given_in_several_ways() -> None:
    changes = Changes()
    changes.add_nodes(pandas.DataFrame({"id": ["a"], "age": [np.nan], "on": [date(2020, 1, 2)]}))
    changes.add_nodes(np.eye(2))
    changes.add_edges(("a", "b", 0.5))
    changes.add_edges([("a", "b"), ("c", "d")])
    changes.add_edges({"source": "a", "target": "b"})
    changes.remove_nodes(np.int64(3))
    assert [change.get("rows", change.get("ids")) for change in changes.values] == [
        [{"id": "a", "age": None, "on": "2020-01-02"}],
        [{"features": [1.0, 0.0]}, {"features": [0.0, 1.0]}],
        [{"source": "a", "target": "b", "weight": 0.5}],
        [{"source": "a", "target": "b"}, {"source": "c", "target": "d"}],
        [{"source": "a", "target": "b"}],
        [3],
    ]
    assert Changes.from_json(changes.to_json()).values == changes.values
    assert json.loads(changes.to_json()) == changes.values


ONE = {"id": "x", "features": [1.0, 0, 0, 0]}
MISTAKES: dict[str, tuple[list[dict[str, Any]], str]] = {
    "no such change": ([{"change": "grow"}], "'change' is 'grow', and none of add_nodes"),
    "no such field": (
        [{"change": "add_nodes", "row": []}],
        r"change 0 \(add_nodes\): there is no field 'row'",
    ),
    "rows are no list": ([{"change": "add_nodes", "rows": 3}], "'rows' must be a list, not 3"),
    "no id": ([{"change": "add_nodes", "rows": [{"features": [1] * 4}]}], "row 0 has no 'id'"),
    "known id": (
        [{"change": "add_nodes", "rows": [ONE, {"id": "n1", "features": [1] * 4}]}],
        "row 1: there is a node 'n1'",
    ),
    "the same id twice": (
        [{"change": "add_nodes", "rows": [ONE, ONE]}],
        "row 1: there is a node 'x'",
    ),
    "too few features": (
        [{"change": "add_nodes", "rows": [{"id": "x", "features": [1]}]}],
        "'features' of row 'x' must be a list of 4 numbers, not 1",
    ),
    "no number": (
        [{"change": "set_features", "rows": [{"id": "n1", "features": [1, "a", 0, 0]}]}],
        "feature 1 of row 'n1' must be a finite number, not 'a'",
    ),
    "unknown node": (
        [{"change": "set_features", "rows": [{"id": "zz", "features": [1] * 4}]}],
        "set_features: row 0: there is no node 'zz'",
    ),
    "unknown end": (
        [{"change": "add_edges", "rows": [{"source": "n1", "target": "zz", "weight": 1}]}],
        "row 0, 'target': there is no node 'zz'",
    ),
    "no end": ([{"change": "add_edges", "rows": [{"source": "n1"}]}], "row 0 has no 'target'"),
    "no weight": (
        [{"change": "add_edges", "rows": [{"source": "n1", "target": "n2"}]}],
        "'weight' must be a finite number, not None",
    ),
    "negative weight": (
        [{"change": "add_edges", "rows": [{"source": "n1", "target": "n2", "weight": -1}]}],
        "'weight' is -1: weights are not negative",
    ),
    "no such edge": (
        [{"change": "remove_edges", "rows": [{"source": "n10", "target": "n11"}]}],
        "row 0: there is no such edge",
    ),
    "removed twice": ([{"change": "remove_nodes", "ids": ["n1", "n1"]}], "there is no node 'n1'"),
    "a kind": ([{"change": "remove_nodes", "ids": [], "kind": "user"}], "has no kinds of nodes"),
    "a relation": (
        [{"change": "add_edges", "rows": [], "relation": "likes"}],
        "has no relations, and relation is 'likes'",
    ),
    "an overflow": (
        [{"change": "set_features", "rows": [{"id": "n1", "features": [1.7e308, -1.7e308] * 2}]}],
        "would not be a finite number",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_named_and_nothing_is_applied(name: str, live: Live) -> None:
    changes, words = MISTAKES[name]
    before, version = live._world.state.outputs.clone(), live.version
    right = {"change": "add_nodes", "rows": [{"id": "new", "features": [0, 1, 0, 1]}]}
    with pytest.raises(ValueError, match=words):
        live.apply(changes)
    with pytest.raises(ValueError, match=words.partition(": ")[2] or words):
        live.apply([right, *changes])
    assert torch.equal(live._world.state.outputs, before)
    assert live.version == version
    assert "new" not in live
    live.apply(right)
    assert "new" in live


def test_changes_of_a_block_see_each_other(live: Live) -> None:
    with live.changes() as changes:
        changes.add_nodes(ONE)
        changes.add_edges([("x", "n0", 1.0), ("x", "n1", 1.0)])
        changes.remove_edges(("n0", "x"))
        changes.remove_nodes("n2")
    assert [row["id"] for row in live.neighbours("x")] == ["n1"]
    assert "n2" not in live


def test_a_block_that_fails_changes_nothing(live: Live) -> None:
    def failing() -> None:
        with live.changes() as changes:
            changes.remove_nodes("n1")
            raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        failing()
    assert "n1" in live
