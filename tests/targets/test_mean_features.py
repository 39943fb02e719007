"""Features that the import made of edges, made again of visible edges."""

from __future__ import annotations

import pandas as pd
import torch

from vrgcn import Graph, split_pairs

NAME = "user-rated-item"


def movies(*, keep: list[str]) -> Graph:
    rated = pd.DataFrame(
        {
            "user": ["a", "a", "b", "b", "c", "c"],
            "item": ["x", "y", "x", "y", "x", "z"],
            "rating": [1, 5, 3, 4, 8, 2],
            "part": ["train", "train", "train", "test", "test", "test"],
        }
    )
    users = pd.DataFrame({"id": ["a", "b", "c"], "age": [20, 30, 40]})
    items = pd.DataFrame({"id": ["x", "y", "z"], "price": [1.0, 2.0, 3.0]})
    edges = {("user", "rated", "item"): rated}
    return Graph.from_tables({"user": users, "item": items}, edges, keep=keep)


def column(graph: Graph, name: str) -> list[float]:
    names = graph.names.features or []
    kind = name.partition(".")[0]
    rows = graph.kinds.range(kind)
    return graph.features.to_dense()[rows.start : rows.stop, names.index(name)].tolist()


def test_means_know_training_edges_alone_where_the_graph_keeps_the_numbers() -> None:
    whole = movies(keep=["rated.rating", "rated.part"])
    assert column(whole, "item.rated.rating") == [4, 4.5, 2]
    graph = split_pairs(whole, NAME, (1, 0, 0), split_column="part")
    assert column(graph, "item.rated.rating") == [2, 5, 3]  # z has no training edge: their mean
    assert column(graph, "user.rev_rated.rating") == [3, 3, 3]
    assert column(graph, "user.age") == [20, 30, 40]
    assert column(whole, "item.rated.rating") == [4, 4.5, 2]


def test_means_are_zero_where_the_graph_keeps_no_numbers() -> None:
    graph = split_pairs(movies(keep=["rated.part"]), NAME, (1, 0, 0), split_column="part")
    assert column(graph, "item.rated.rating") == [0, 0, 0]
    assert column(graph, "user.rev_rated.rating") == [0, 0, 0]
    assert column(graph, "item.price") == [1, 2, 3]


def test_means_of_the_predicted_column_are_zero() -> None:
    whole = movies(keep=["rated.rating", "rated.part"])
    graph = split_pairs(whole, f"{NAME}.rating", (1, 0, 0), split_column="part")
    assert column(graph, "item.rated.rating") == [0, 0, 0]


def test_marks_of_nodes_without_edges_count_visible_edges() -> None:
    rated = pd.DataFrame(
        {"user": ["a", "b"], "item": ["x", "y"], "stars": [1, 2], "part": ["train", "test"]}
    )
    items = pd.DataFrame({"id": ["x", "y", "z"], "price": [1.0, 2.0, 3.0]})
    whole = Graph.from_tables(
        {"item": items}, {("user", "rated", "item"): rated}, keep=["rated.stars", "rated.part"]
    )
    assert column(whole, "item.rated.none") == [0, 0, 1]
    graph = split_pairs(whole, NAME, (1, 0, 0), split_column="part")
    assert column(graph, "item.rated.none") == [0, 1, 1]


def test_means_over_later_edges_of_another_relation_know_earlier_ones_alone() -> None:
    bought = pd.DataFrame(
        {
            "user": ["a", "b", "a"],
            "item": ["x", "x", "y"],
            "day": ["2026-01-01", "2026-02-01", "2026-03-01"],
        }
    )
    saw = pd.DataFrame(
        {
            "user": ["a", "b"],
            "item": ["x", "x"],
            "minutes": [10, 30],
            "on": ["2026-01-01", "2026-09-01"],
        }
    )
    items = pd.DataFrame({"id": ["x", "y"], "price": [1.0, 2.0]})
    keep = ["bought.day", "saw.minutes", "saw.on"]
    tables = {("user", "bought", "item"): bought, ("user", "saw", "item"): saw}
    whole = Graph.from_tables({"item": items}, tables, keep=keep)
    assert column(whole, "item.saw.minutes") == [20, 20]
    graph = split_pairs(whole, "user-bought-item", (1, 0, 0), train_until="2026-02")
    assert column(graph, "item.saw.minutes") == [10, 10]
    later = [n for n in graph.names.features or [] if n.startswith("item.saw.on")]
    assert later
    assert not any(any(column(graph, name)) for name in later)
    assert torch.isfinite(graph.features.to_dense()).all()
