"""Files of pairs: no column has the name of another, whatever kinds and columns are called."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc
import pytest
import torch

from vrgcn import Graph, split_pairs
from vrgcn.data.edge_tables import edge_batch, edge_file, read_edges
from vrgcn.targets.scored import ScoredValues


def rated(kinds: tuple[str, str], name: str, values: list[Any]) -> Graph:
    """Six users rate six items."""
    one, other = kinds
    edges = torch.stack([torch.arange(6), torch.arange(6)])
    triple = (one, "rated", other)
    graph = Graph.from_kinds(
        {one: 6, other: 6}, {triple: edges}, edge_columns={triple: {name: values}}
    )
    return split_pairs(graph, f"{one}-rated-{other}.{name}", (0.5, 0.2, 0.3))


@pytest.mark.parametrize(
    ("kinds", "name", "columns"),
    [
        (("user", "item"), "rating", ["user", "item", "rating", "probability"]),
        (("user", "item"), "item", ["user", "item", "value", "probability"]),
        (("user", "item"), "probability", ["user", "item", "value", "probability"]),
        (("value", "item"), "value", ["source", "target", "value", "probability"]),
        (("user", "probability"), "x", ["source", "target", "x", "probability"]),
    ],
)
def test_values_and_ends_have_columns_of_their_own(
    kinds: tuple[str, str], name: str, columns: list[str], tmp_path: Path
) -> None:
    graph = rated(kinds, name, list("ababab"))
    assert graph.pairs is not None
    asked = torch.tensor([[0, 6], [5, 11]])
    found = torch.tensor([[0.0, 9], [9, 0]])
    batch = ScoredValues(graph.pairs).written(graph, asked, found)
    with edge_file(tmp_path / "p.csv", batch.schema) as file:
        file.write_batch(batch)
    table = pc.read_csv(tmp_path / "p.csv")
    assert table.column_names == columns
    assert table[2].to_pylist() == ["b", "a"]
    assert torch.equal(read_edges(tmp_path / "p.csv", graph, graph.pairs), asked)


def test_ranks_and_scores_of_kinds_called_so_have_columns_of_their_own() -> None:
    graph = rated(("score", "rank"), "x", [1.0, 2, 3, 4, 5, 6])
    assert graph.pairs is not None
    columns = {"rank": pa.array([1]), "score": pa.array([0.5])}
    batch = edge_batch(graph, graph.pairs, torch.tensor([[0, 6]]), columns)
    assert batch.schema.names == ["source", "target", "rank", "score"]
