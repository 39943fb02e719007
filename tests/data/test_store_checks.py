"""Graphs on disk whose numbers are wrong: refused by the file's name, opened or verified."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch

from tests.data.test_store import DENSE, EDGES, GRAPHS, edit_meta, read_meta, signed_anew
from tests.messages import refused
from vrgcn.data import store_checks
from vrgcn.data.store import load_graph, save_graph, verify_graph
from vrgcn.graph.graph import Graph
from vrgcn.graph.names import Names


def damaged(path: Path, kind: str, name: str, change: Callable[[np.ndarray], None]) -> Path:
    """A saved graph of which one array was changed, its shape and type as before."""
    save_graph(GRAPHS[kind](), path)
    array = np.load(path / f"{name}.npy")
    change(array)
    np.save(path / f"{name}.npy", array)
    return path


def put(place: int | tuple[int, ...], value: float) -> Callable[[np.ndarray], None]:
    def change(array: np.ndarray) -> None:
        array[place] = value

    return change


WRONG = {
    "a row that ends before it starts": ("dense", "indptr_0", put(1, 4)),
    "a first row that starts late": ("dense", "indptr_0", put(0, 1)),
    "a last row beyond the entries": ("dense", "indptr_0", put(-1, 10**12)),
    "a row far below zero": ("dense", "indptr_0", put(2, -(2**62))),
    "a column beyond the nodes": ("dense", "indices_0", put(2, 4)),
    "a negative column": ("dense", "indices_0", put(0, -1)),
    "a neighbour twice": ("dense", "indices_0", put(1, 1)),
    "a weight that is not finite": ("weighted", "weights_0", put(3, np.nan)),
    "a place of sparse features": ("sparse", "feature_indices_0", put(1, 3)),
    "a row of sparse features": (
        "sparse",
        "feature_indptr_0",
        put(1, 3),
    ),
    "a label beyond the classes": (
        "dense",
        "labels",
        put(1, 3),
    ),
    "a label below -1": ("dense", "labels", put(2, -2)),
    "a share of a class": (
        "multilabel",
        "labels",
        put((1, 0), 0.5),
    ),
    "an infinite number": ("numbers", "labels", put(3, np.inf)),
    "a training node twice": ("double", "train", put(1, 0)),
    "a training node that is none": ("dense", "train", put(0, 9)),
    "a test node of training": ("dense", "test", put(0, 0)),
    "a node without a label": ("dense", "test", put(0, 2)),
    "a number that is not known": ("numbers", "train", put(1, 2)),
    "several classes, unknown": ("multilabel", "train", put(1, 2)),
}


@pytest.mark.parametrize("what", WRONG)
@pytest.mark.parametrize("piece", [1 << 22, 2])
def test_a_wrong_number_is_refused_by_its_file(
    what: str, piece: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, name, change = WRONG[what]
    monkeypatch.setattr(store_checks, "_PIECE", piece)  # large arrays are checked in pieces
    path = damaged(tmp_path / "graph", kind, name, change)
    with refused():
        load_graph(path)


@pytest.mark.parametrize("kind", GRAPHS)
@pytest.mark.parametrize("piece", [1, 2, 3])
def test_right_graphs_pass_whatever_the_pieces(
    kind: str, piece: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_checks, "_PIECE", piece)
    save_graph(GRAPHS[kind](), tmp_path / "graph")
    assert repr(load_graph(tmp_path / "graph")) == repr(GRAPHS[kind]())
    assert verify_graph(tmp_path / "graph") is None


@pytest.mark.parametrize(
    ("kind", "name"),
    [("dense", "features_0"), ("sparse", "feature_values_0"), ("double", "features_0")],
)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_features_that_are_not_finite_are_refused_when_verified(
    kind: str, name: str, value: float, tmp_path: Path
) -> None:
    path = damaged(tmp_path / "graph", kind, name, lambda array: array.flat.__setitem__(2, value))
    signed_anew(path)
    load_graph(path)
    with refused():
        verify_graph(path)


def test_large_finite_features_are_no_reason_to_refuse(tmp_path: Path) -> None:
    save_graph(Graph(EDGES, torch.full((4, 3), 3e38)), tmp_path / "graph")
    assert verify_graph(tmp_path / "graph") is None


@pytest.mark.parametrize("kind", GRAPHS)
def test_a_flipped_bit_in_any_file_is_found(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "graph"
    save_graph(GRAPHS[kind](), path)
    for file in sorted(path.iterdir()):
        whole = file.read_bytes()
        for place in {len(whole) // 2, len(whole) - 1}:
            file.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
            with refused():
                verify_graph(path)
        file.write_bytes(whole)
    assert verify_graph(path) is None


@pytest.mark.parametrize("change", [b"\0", b""])
def test_a_changed_length_is_found_when_opened(change: bytes, tmp_path: Path) -> None:
    path = tmp_path / "graph"
    save_graph(GRAPHS["dense"](), path)
    for file in path.glob("*.npy"):
        whole = file.read_bytes()
        file.write_bytes(whole + change if change else whole[:-1])
        with refused():
            load_graph(path)
        file.write_bytes(whole)


def test_a_change_of_meta_by_hand_is_found_when_opened(tmp_path: Path) -> None:
    path = tmp_path / "graph"
    names = Names(classes=["yes", "no", "maybe"])
    save_graph(Graph(EDGES, DENSE, [0, 2, 1, 1], names=names), path)
    text = (path / "meta.json").read_text()
    (path / "meta.json").write_text(text.replace("maybe", "never"))
    with refused():
        load_graph(path)


KIND = {"name": "", "nodes": 4, "width": 3, "ids": False}
RELATION = {
    **{"source": "", "name": "edges", "target": ""},
    **{"edges": 5, "weighted": False, "undirected": False, "one_way": False},
}


@pytest.mark.parametrize(
    "changes",
    [
        {"kinds": [KIND | {"nodes": 10**15}]},
        {"kinds": [KIND | {"nodes": 0}]},
        {"kinds": [KIND | {"nodes": True}]},
        {"kinds": [KIND | {"width": "3"}]},
        {"kinds": [KIND | {"width": 0}]},
        {"kinds": [KIND | {"width": 2**53}]},
        {"kinds": [KIND | {"ids": True}]},
        {"kinds": []},
        {"kinds": [KIND, KIND]},
        {"kinds": [KIND, KIND | {"name": "user"}]},
        {"target": None},
        {"relations": [RELATION | {"edges": 1e3}]},
        {"relations": [RELATION | {"edges": 10**400}]},
        {"relations": []},
        {"relations": [RELATION | {"one_way": 1}]},
        {"relations": [RELATION | {"one_way": True, "undirected": True}]},
        {"relations": [RELATION | {"target": "user"}]},
        {"labelled": 1},
        {"task": "ranking"},
        {"task": ["classes"]},
        {"task": "regression"},
        {"num_classes": 10**13},
        {"num_classes": 2},
        {"splits": {"train": 1, "val": 1}},
        {"splits": [1, 1, 1]},
        {"classes": ["a", 2, "c"]},
        {"classes": ["a"]},
        {"features": ["a"]},
        {"dtypes": {"indptr": 5}},
        {"dtypes": {}},
        {"checksums": None},
        {"version": "3"},
        {"version": True},
    ],
)
def test_a_meta_that_cannot_be_is_refused(changes: dict, tmp_path: Path) -> None:
    save_graph(GRAPHS["dense"](), tmp_path / "graph")
    meta = read_meta(tmp_path / "graph")
    assert (meta["kinds"], meta["relations"]) == ([KIND], [RELATION])
    edit_meta(tmp_path / "graph", **changes)
    with refused((ValueError, FileNotFoundError)):
        load_graph(tmp_path / "graph")


PLACES = [
    {"row": 0, "column": 0, "rows": 4, "width": 3, "entries": None},
    {"row": 0, "column": 3, "rows": 4, "width": 3, "entries": 3},
]


@pytest.mark.parametrize(
    "changes",
    [
        {"blocks": None},
        {"blocks": []},
        {"blocks": [PLACES[0], PLACES[1] | {"row": -1}]},
        {"blocks": [PLACES[0], PLACES[1] | {"name": 1}]},
        {"blocks": [PLACES[0], PLACES[1] | {"column": 4}]},
        {"blocks": [PLACES[0], PLACES[1] | {"column": 2}]},
        {"blocks": [PLACES[0] | {"rows": 3}, PLACES[1]]},
        {"blocks": [PLACES[0], PLACES[1] | {"width": 2}]},
    ],
)
def test_blocks_that_cannot_be_are_refused(changes: dict, tmp_path: Path) -> None:
    save_graph(GRAPHS["blocks"](), tmp_path / "graph")
    assert read_meta(tmp_path / "graph")["blocks"] == PLACES
    edit_meta(tmp_path / "graph", **changes)
    with refused():
        load_graph(tmp_path / "graph")


def test_a_meta_nested_too_deeply_is_refused(tmp_path: Path) -> None:
    save_graph(GRAPHS["dense"](), tmp_path / "graph")
    (tmp_path / "graph" / "meta.json").write_text("[" * 200_000)
    with refused():
        load_graph(tmp_path / "graph")


def test_no_name_in_meta_leads_out_of_the_folder(tmp_path: Path) -> None:
    save_graph(GRAPHS["dense"](), tmp_path / "graph")
    sums = read_meta(tmp_path / "graph")["checksums"]
    edit_meta(tmp_path / "graph", checksums=sums | {"/dev/zero": "0", "../x": "0"})
    assert verify_graph(tmp_path / "graph") is None  # neither is opened: the first has no end


@pytest.mark.parametrize(
    "ids",
    [
        pa.array([1.5, 2.5, 3.5, 4.5]),
        pa.array(["a", "b", None, "d"]),
        pa.array([["a"], ["b"], ["c"], ["d"]]),
        pa.array(["a", "b", "c"]),
    ],
)
def test_ids_of_another_kind_are_refused(ids: pa.Array, tmp_path: Path) -> None:
    graph = Graph(EDGES, DENSE, names=Names(pa.array(["a", "b", "c", "d"])))
    save_graph(graph, tmp_path / "graph")
    with pa.OSFile(str(tmp_path / "graph" / "ids_0.arrow"), "wb") as sink:
        table = pa.table({"id": ids})
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
    with refused():
        load_graph(tmp_path / "graph")


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.int64()])
def test_an_id_that_two_nodes_have_is_refused_when_verified(kind: pa.DataType, tmp_path) -> None:
    for name, ids in (("right", ["3", "14", "15", "9"]), ("wrong", ["3", "14", "9", "14"])):
        names = Names(pa.array(ids).cast(kind))
        save_graph(Graph(EDGES, DENSE, names=names), tmp_path / name)
    assert verify_graph(tmp_path / "right") is None
    with refused():
        verify_graph(tmp_path / "wrong")
