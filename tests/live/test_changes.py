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
from tests.messages import refused
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
    "no such change": [{"change": "grow"}],
    "no such field": [{"change": "add_nodes", "row": []}],
    "rows are no list": [{"change": "add_nodes", "rows": 3}],
    "no id": [{"change": "add_nodes", "rows": [{"features": [1] * 4}]}],
    "known id": [{"change": "add_nodes", "rows": [ONE, {"id": "n1", "features": [1] * 4}]}],
    "the same id twice": [{"change": "add_nodes", "rows": [ONE, ONE]}],
    "too few features": [{"change": "add_nodes", "rows": [{"id": "x", "features": [1]}]}],
    "no number": [{"change": "set_features", "rows": [{"id": "n1", "features": [1, "a", 0, 0]}]}],
    "unknown node": [{"change": "set_features", "rows": [{"id": "zz", "features": [1] * 4}]}],
    "unknown end": [
        {"change": "add_edges", "rows": [{"source": "n1", "target": "zz", "weight": 1}]}
    ],
    "no end": [{"change": "add_edges", "rows": [{"source": "n1"}]}],
    "no weight": [{"change": "add_edges", "rows": [{"source": "n1", "target": "n2"}]}],
    "negative weight": [
        {"change": "add_edges", "rows": [{"source": "n1", "target": "n2", "weight": -1}]}
    ],
    "no such edge": [{"change": "remove_edges", "rows": [{"source": "n10", "target": "n11"}]}],
    "removed twice": [{"change": "remove_nodes", "ids": ["n1", "n1"]}],
    "a kind": [{"change": "remove_nodes", "ids": [], "kind": "user"}],
    "a relation": [{"change": "add_edges", "rows": [], "relation": "likes"}],
    "an overflow": [
        {"change": "set_features", "rows": [{"id": "n1", "features": [1.7e308, -1.7e308] * 2}]}
    ],
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_named_and_nothing_is_applied(name: str, live: Live) -> None:
    changes = MISTAKES[name]
    before, version = live._world.state.outputs.clone(), live.version
    right = {"change": "add_nodes", "rows": [{"id": "new", "features": [0, 1, 0, 1]}]}
    with refused():
        live.apply(changes)
    with refused():
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

    with refused(RuntimeError):
        failing()
    assert "n1" in live
