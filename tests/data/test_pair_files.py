"""Files of pairs: no column has the name of another, whatever kinds and columns are called."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.csv as pc
import pytest
import torch

from vrgcn import Graph, split_pairs
from vrgcn.data.pairs import read_pairs, scored_file, write_values


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
    write_values(tmp_path / "p.csv", graph, graph.pairs, asked, torch.tensor([[0.0, 9], [9, 0]]))
    table = pc.read_csv(tmp_path / "p.csv")
    assert table.column_names == columns
    assert table[2].to_pylist() == ["b", "a"]
    assert torch.equal(read_pairs(tmp_path / "p.csv", graph, graph.pairs), asked)


def test_ranks_and_scores_of_kinds_called_so_have_columns_of_their_own(tmp_path: Path) -> None:
    graph = rated(("score", "rank"), "x", [1.0, 2, 3, 4, 5, 6])
    assert graph.pairs is not None
    with scored_file(tmp_path / "p.csv", graph, graph.pairs, ranked=True) as file:
        file.write(torch.tensor([[0, 6]]), rank=torch.tensor([1]), score=torch.tensor([0.5]))
    assert pc.read_csv(tmp_path / "p.csv").column_names == ["source", "target", "rank", "score"]
