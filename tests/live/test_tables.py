"""Several tables: rows of each kind by its own recipe, as `--like` imports them anew."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import torch

import vrgcn
from tests.messages import refused
from vrgcn import Graph

BOUGHT, FOLLOWS = ("user", "bought", "item"), ("user", "follows", "user")


def tables() -> tuple[dict[str, Any], dict[Any, Any]]:
    rng = np.random.default_rng(0)
    users = pandas.DataFrame(
        {
            "id": range(1, 31),
            "age": rng.integers(18, 80, 30),
            "churned": rng.choice(["no", "yes"], 30),
        }
    )
    items = pandas.DataFrame(
        {
            "id": [f"i{n}" for n in range(12)],
            "price": rng.random(12).round(2),
            "colour": rng.choice(["red", "blue"], 12),
        }
    )
    bought = pandas.DataFrame(
        {"user": rng.integers(1, 31, 60), "item": rng.choice(items.id, 60)}
    ).drop_duplicates()
    follows = pandas.DataFrame({"source": [1, 2, 9], "target": [2, 3, 4], "since": [2001, 2002, 3]})
    return {"user": users, "item": items}, {BOUGHT: bought, FOLLOWS: follows}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("store")
    nodes, edges = tables()
    Graph.from_tables(
        nodes, edges, out=folder / "graph", label="user.churned", ratio=(0.6, 0.2, 0.2)
    )
    out = str(folder / "run")
    return vrgcn.train(str(folder / "graph"), out=out, epochs=2, smooth="never")


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A run on tables whose edges have no columns of their own."""
    folder = tmp_path_factory.mktemp("plain")
    nodes, edges = tables()
    del edges[FOLLOWS]["since"]
    Graph.from_tables(
        nodes, edges, out=folder / "graph", label="user.churned", ratio=(0.6, 0.2, 0.2)
    )
    out = str(folder / "run")
    return vrgcn.train(str(folder / "graph"), out=out, epochs=2, smooth="never")


def test_rows_of_several_tables_are_read_as_the_import_reads_them(plain: Any) -> None:
    live = plain.live()
    with live.changes() as changes:
        changes.add_nodes({"id": 77, "age": 30}, kind="user")
        changes.add_nodes({"id": "new", "price": 0.5, "colour": "red"}, kind="item")
        changes.add_edges([{"user": 77, "item": "new"}, {"user": 3, "item": "new"}], "bought")
        changes.add_edges({"source": 77, "target": 1}, "user-follows-user")
        changes.set_features({"id": "i2", "colour": "blue"}, kind="item")
        changes.remove_nodes(9)
    nodes, edges = tables()
    del edges[FOLLOWS]["since"]
    nodes["user"] = pandas.concat([nodes["user"], pandas.DataFrame([{"id": 77, "age": 30}])])
    more = pandas.DataFrame([{"id": "new", "price": 0.5, "colour": "red"}])
    nodes["item"] = pandas.concat([nodes["item"], more])
    nodes["item"].loc[nodes["item"].id == "i2", "colour"] = "blue"
    nodes["user"] = nodes["user"][nodes["user"].id != 9]
    bought = pandas.DataFrame({"user": [77, 3], "item": ["new", "new"]})
    edges[BOUGHT] = pandas.concat([edges[BOUGHT], bought])
    edges[BOUGHT] = edges[BOUGHT][edges[BOUGHT].user != 9]
    follows = pandas.concat([edges[FOLLOWS], pandas.DataFrame({"source": [77], "target": [1]})])
    edges[FOLLOWS] = follows[(follows.source != 9) & (follows.target != 9)]
    nodes = {kind: table.reset_index(drop=True) for kind, table in nodes.items()}
    edges = {triple: table.reset_index(drop=True) for triple, table in edges.items()}
    anew = Graph.from_tables(nodes, edges, like=Path(plain.config["graph"]))
    wanted = plain.predict(anew)
    found = live.predict(anew.names.ids_of("user").to_pylist()).outputs
    assert torch.allclose(found, wanted, atol=1e-5)


def test_features_made_of_columns_of_edges_do_not_follow_a_change(run: Any) -> None:
    live = run.live()
    words = r"means of columns of edges \(user-follows-user.since\).*cannot follow.*drop="
    assert [re.match(words, refused) is not None for refused in live.refuses] == [True]
    with refused():
        live.add_edges((1, 4), "follows")
    with refused():
        live.add_nodes({"id": 99, "age": 3}, kind="user")
    live.add_nodes({"id": "new", "price": 0.5, "colour": "red"}, kind="item")
    live.add_edges((1, "new"), "bought")
    with refused():
        live.add_edges((1, "new"), "likes")
    with refused():
        live.add_nodes({"id": "x"}, kind="itm")
