"""Means of columns of edges as features: which columns they are, and the sentence about them."""

from __future__ import annotations

import pandas

from vrgcn import Graph
from vrgcn.graph.edge_means import averaged_columns, cannot_follow


def graph(**columns: list[object]) -> Graph:
    users = pandas.DataFrame({"id": [1, 2, 3], "age": [20, 30, 40]})
    items = pandas.DataFrame({"id": [1, 2], "price": [1.5, 2.5]})
    bought = pandas.DataFrame({"user": [1, 2, 3], "item": [1, 2, 2], **columns})
    follows = pandas.DataFrame({"source": [1], "target": [2]})
    edges = {("user", "bought", "item"): bought, ("user", "follows", "user"): follows}
    return Graph.from_tables({"user": users, "item": items}, edges)


def test_columns_are_named_as_the_user_named_them() -> None:
    found = averaged_columns(graph(rating=[1, 5, 3], way=["app", "shop", "app"]))
    assert found == {"user-bought-item": ["rating", "way"]}
    assert averaged_columns(graph()) == {}


def test_the_sentence_names_the_columns_and_the_flag() -> None:
    assert cannot_follow({}) is cannot_follow({"bought": []}) is None
    said = cannot_follow({"bought": ["rating", "way"]})
    assert said is not None
    assert said.startswith("means of columns of edges (bought.rating, bought.way) are features")
    assert said.endswith("""drop=("bought.rating", "bought.way")""")
