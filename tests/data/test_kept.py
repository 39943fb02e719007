"""Columns of single edges and nodes: imported, stored, read again."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from tests.messages import refused
from vrgcn import Graph, load_graph, save_graph
from vrgcn.data.reorder import reorder_graph
from vrgcn.data.store import verify_graph
from vrgcn.data.store_format import signed
from vrgcn.data.tables import ImportSpec, import_tables

RATED = "user-rated-item"


def frame() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "user": ["a", "b", "a", "a"],
            "item": [1, 1, 2, 1],
            "rating": [5, 3, 4, 1],
            "day": ["2026-01-02", "2026-01-03", "", "2026-01-01"],
            "part": ["test", "train", "val", "test"],
            "mood": ["glad", "sad", "glad", "sad"],
        }
    )


def store(**options: object) -> Graph:
    users = pd.DataFrame({"id": ["a", "b"], "age": [20, 30]})
    keep = [f"rated.{column}" for column in ("rating", "day", "part", "mood")]
    edges = {("user", "rated", "item"): frame()}
    return Graph.from_tables({"user": users}, edges, **({"keep": keep} | options))


def test_an_import_keeps_numbers_dates_splits_and_classes_of_single_edges() -> None:
    graph = store()
    kept = graph.kept[RATED]
    assert {name: column.kind for name, column in kept.items()} == {
        "rating": "number",
        "day": "date",
        "part": "split",
        "mood": "class",
    }
    A = graph.relations[RATED].adjacency
    # Edges into item 1, from a and b, then into item 2. Of a's two ratings of item 1 the first in
    # time counts.
    assert A.indices.tolist() == [0, 1, 0]
    assert kept["rating"].values.tolist() == [1, 3, 4]
    assert kept["part"].values.tolist() == [2, 0, 1]
    assert [kept["mood"].classes[code] for code in kept["mood"].values] == ["sad", "sad", "glad"]
    assert kept["day"].values.tolist()[:2] == [1767225600.0, 1767398400.0]
    assert kept["day"].known.tolist() == [True, True, False]


def test_a_kept_split_is_no_feature_and_kept_numbers_still_are() -> None:
    names = store().names.features or []
    assert not any("part" in name for name in names)
    assert "item.rated.rating" in names


def test_numbers_may_be_dates_and_a_format_may_be_given() -> None:
    edges = pd.DataFrame(
        {"s": [0, 1], "t": [1, 2], "unix": [86_400, 172_800], "day": ["3.1.1970", "4.1.1970"]}
    )
    graph = Graph.from_pandas(
        None, edges, source="s", target="t", keep=["unix=date", "day=date:%d.%m.%Y"], directed=True
    )
    assert graph.kept["edges"]["unix"].kind == "date"
    assert graph.kept["edges"]["unix"].values.tolist() == [86_400, 172_800]
    assert graph.kept["edges"]["day"].values.tolist() == [172_800, 259_200]


def test_columns_of_nodes_are_kept_too_and_unknown_for_nodes_that_only_edges_name() -> None:
    nodes = pd.DataFrame({"id": [0, 1], "born": ["2020-01-01", "2021-01-01"], "x": [1.0, 2.0]})
    edges = pd.DataFrame({"source": [0, 1], "target": [1, 9]})
    graph = Graph.from_pandas(nodes, edges, keep="born", unknown_nodes="add")
    born = graph.kept["nodes"]["born"]
    assert born.kind == "date"
    assert born.known.tolist() == [True, True, False]


def test_a_stored_graph_has_its_columns_again(tmp_path: Path) -> None:
    graph = store(out=tmp_path / "imported")
    save_graph(graph, tmp_path / "saved")
    for name in ("imported", "saved"):
        verify_graph(tmp_path / name)
        again = load_graph(tmp_path / name).kept[RATED]
        for column, own in graph.kept[RATED].items():
            assert again[column].kind == own.kind
            assert again[column].classes == own.classes
            assert torch.equal(again[column].values.nan_to_num(), own.values.nan_to_num())


def test_another_order_of_nodes_keeps_columns_with_their_edges(tmp_path: Path) -> None:
    generator = torch.Generator().manual_seed(0)
    edges = torch.randint(40, (2, 120), generator=generator)
    values = torch.arange(120).double()
    graph = Graph(
        edges, torch.rand(40, 2), edge_columns={"x": values}, node_columns={"n": range(40)}
    )
    save_graph(graph, tmp_path / "g")
    reorder_graph(tmp_path / "g", tmp_path / "r", "ldg", block=8)
    again = load_graph(tmp_path / "r")
    names = np.asarray(again.names.node_ids(np.arange(40)))
    assert again.kept["nodes"]["n"].values.tolist() == names.tolist()
    A, B = graph.adjacency, again.adjacency
    before = dict(
        zip(
            zip(A.indices.tolist(), A.row_of_entry.tolist(), strict=True),
            graph.kept["edges"]["x"].values.tolist(),
            strict=True,
        )
    )
    for s, t, x in zip(B.indices, B.row_of_entry, again.kept["edges"]["x"].values, strict=True):
        assert before[int(names[s]), int(names[t])] == x


@pytest.mark.parametrize(
    "change",
    [
        {"kept": [{"owner": "x"}]},
        {"kept": [{"owner": "who", "name": "x", "kind": "number", "classes": []}]},
    ],
)
def test_a_description_that_cannot_be_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    graph = Graph(torch.tensor([[0], [1]]), torch.eye(2), edge_columns={"x": [1.0]})
    save_graph(graph, tmp_path / "g")
    file = tmp_path / "g" / "meta.json"
    meta = json.loads(file.read_text())
    del meta["checksum"]
    file.write_text(json.dumps(signed(meta | change)))
    with refused():
        load_graph(tmp_path / "g")


def test_codes_outside_of_their_classes_are_refused(tmp_path: Path) -> None:
    graph = Graph(torch.tensor([[0], [1]]), torch.eye(2), edge_columns={"x": ["train"]})
    save_graph(graph, tmp_path / "g")
    np.save(tmp_path / "g" / "kept_0.npy", np.array([3]))
    with refused():
        load_graph(tmp_path / "g")


@pytest.mark.parametrize(
    "keep",
    [
        "rating=stars",
        "ratings",
        "source",
        "when=number",
        "part=split",
        "when=date",
    ],
)
def test_columns_that_cannot_be_kept_are_named(tmp_path: Path, keep: str) -> None:
    (tmp_path / "e.csv").write_text(
        "source,target,rating,when,part\na,b,1,2026-01-01,train\nb,c,2,soon,later\n"
    )
    with refused():
        import_tables(ImportSpec(tmp_path / "e.csv", tmp_path / "out", keep=(keep,)))
    assert not (tmp_path / "out").exists()
