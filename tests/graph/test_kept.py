"""Columns of single edges and nodes."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.messages import refused
from vrgcn import Graph
from vrgcn.graph.kept import Column

RATED = ("user", "rated", "item")


def of_edges(graph: Graph, name: str, owner: str = "edges") -> dict[tuple[int, int], float]:
    """The value of each edge, by its source and target."""
    A = graph.edges[owner]
    ends = zip(A.indices.tolist(), A.row_of_entry.tolist(), strict=True)
    return dict(zip(ends, graph.kept[owner][name].values.tolist(), strict=True))


def test_a_column_follows_its_edges_into_the_order_of_the_adjacency() -> None:
    edges = torch.tensor([[2, 0, 1], [0, 1, 2]])
    graph = Graph(edges, torch.eye(3), edge_columns={"rating": [5, 3, 4]})
    assert of_edges(graph, "rating") == {(2, 0): 5, (0, 1): 3, (1, 2): 4}


def test_an_undirected_edge_has_its_value_in_both_directions() -> None:
    graph = Graph(
        torch.tensor([[0, 1, 2], [1, 2, 2]]),
        torch.eye(3),
        undirected=True,
        edge_columns={"x": [7.0, 8.0, 9.0]},
    )
    assert of_edges(graph, "x") == {(0, 1): 7, (1, 0): 7, (1, 2): 8, (2, 1): 8, (2, 2): 9}


def test_of_repeated_edges_the_first_in_time_counts_with_all_its_columns() -> None:
    times = np.array(["2026-03-01", "2026-01-01", "2026-02-01"], "datetime64[D]")
    graph = Graph(
        torch.tensor([[0, 0, 0], [1, 1, 1]]),
        torch.eye(2),
        edge_columns={"rating": [1, 2, 3], "time": times},
    )
    assert of_edges(graph, "rating") == {(0, 1): 2}
    assert of_edges(graph, "time") == {(0, 1): 1767225600.0}


def test_of_repeated_edges_without_a_time_the_earlier_split_counts_then_the_first_row() -> None:
    edges = torch.tensor([[0, 0, 0, 1, 1], [1, 1, 1, 0, 0]])
    columns = {"split": ["test", "val", "val", "", "test"], "x": [1, 2, 3, 4, 5]}
    graph = Graph(edges, torch.eye(2), edge_columns=columns)
    assert of_edges(graph, "split") == {(0, 1): 1, (1, 0): 2}
    assert of_edges(graph, "x") == {(0, 1): 2, (1, 0): 5}


def test_kinds_of_columns_are_seen_from_their_values() -> None:
    edges = torch.tensor([[0, 1], [1, 0]])
    given = {"n": [1, np.nan], "w": ["x", None], "s": ["train", "valid"]}
    kept = Graph(edges, torch.eye(2), edge_columns=given).kept["edges"]
    assert {name: column.kind for name, column in kept.items()} == {
        "n": "number",
        "w": "class",
        "s": "split",
    }
    assert kept["w"].classes == ("x",)
    assert [column.known.tolist() for column in kept.values()] == [
        [False, True],  # the entry into node 0 comes first
        [False, True],
        [True, True],
    ]


def test_relations_and_kinds_have_columns_of_their_own() -> None:
    graph = Graph.from_kinds(
        {"user": 2, "item": torch.eye(3)},
        {RATED: torch.tensor([[1, 0, 0], [0, 2, 1]])},
        edge_columns={RATED: {"rating": [1.0, 2.0, 3.0]}},
        node_columns={"user": {"joined": np.array(["1970-01-02", "NaT"], "datetime64[D]")}},
    )
    rated = of_edges(graph, "rating", "user-rated-item")
    assert rated == {(1, 2): 1, (0, 4): 2, (0, 3): 3}
    joined = graph.kept["user"]["joined"]
    assert joined.kind == "date"
    assert joined.values[0] == 86_400
    assert joined.known.tolist() == [True, False]


@pytest.mark.parametrize(
    "columns",
    [
        {"x": [1.0]},
        {"x": [1.0, np.inf]},
        {"x": Column("class", torch.tensor([0, 2]), ("a", "b"))},
        {"x": Column("split", torch.tensor([0.0, 2.0]))},
        {"x": [b"a", b"b"]},
    ],
)
def test_columns_that_cannot_be_are_refused(columns: dict[str, object]) -> None:
    with refused():
        Graph(torch.tensor([[0, 1], [1, 0]]), torch.eye(2), edge_columns=columns)


def test_columns_of_a_relation_that_is_not_there_are_refused() -> None:
    with refused():
        Graph.from_kinds(
            {"user": 2, "item": 2},
            {RATED: torch.tensor([[0], [0]])},
            edge_columns={("user", "saw", "item"): {"x": [1.0]}},
        )
