"""Graphs on disk: what is saved comes back, lazily, or fails with the file's name."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

from tests.messages import refused
from vrgcn.data import store
from vrgcn.data.store import load_graph, save_graph
from vrgcn.data.store_format import signed
from vrgcn.files.checksums import file_checksum
from vrgcn.graph.block import Block
from vrgcn.graph.blocks import Blocks
from vrgcn.graph.graph import Graph
from vrgcn.graph.names import Names
from vrgcn.graph.scaling import scale_graph
from vrgcn.graph.sparse import stored
from vrgcn.graph.validation import SPLITS

EDGES = torch.tensor([[1, 2, 3, 0, 0], [0, 0, 1, 3, 2]])
WEIGHT = torch.tensor([0.5, 2.0, 1.0, 3.0, 0.25])
DENSE = torch.arange(12, dtype=torch.float32).reshape(4, 3)
SPARSE = torch.eye(4, 3)
BLOCKS = Blocks.beside([DENSE, SPARSE.to_sparse_csr()])
ROWS = Blocks((4, 9), [Block(SPARSE[:2].to_sparse_csr(), 1), Block(DENSE[:1], column=5, row=3)])
CLASSES = torch.tensor([0, 2, -1, 1])
SEVERAL = torch.tensor([[0, 1], [1, 1], [-1, -1], [0, 0]])
NUMBERS = torch.tensor([0.5, 1e9 + 0.25, float("nan"), -3], dtype=torch.float64)

GRAPHS: dict[str, Callable[[], Graph]] = {
    "dense": lambda: Graph(EDGES, DENSE, CLASSES, train=[0], val=[1], test=[3]),
    "double": lambda: Graph(EDGES, DENSE.double(), CLASSES, train=[0, 3], test=[1]),
    "sparse": lambda: Graph(EDGES, SPARSE.to_sparse_csr(), CLASSES, train=[0, 1]),
    "blocks": lambda: Graph(EDGES, BLOCKS, CLASSES, train=[0, 1]),
    "rows in blocks": lambda: Graph(EDGES, ROWS, CLASSES, train=[0, 1]),
    "weighted": lambda: Graph(EDGES, DENSE, CLASSES, edge_weight=WEIGHT, train=[3]),
    "multilabel": lambda: Graph(EDGES, DENSE, SEVERAL, train=[0, 1]),
    "unlabelled": lambda: Graph(EDGES, DENSE),
    "spare classes": lambda: Graph(EDGES, DENSE, CLASSES, num_classes=9),
    "numbers": lambda: Graph(EDGES, DENSE, NUMBERS, train=[0, 1], task="regression"),
    "no edges": lambda: Graph(EDGES[:, :0], DENSE, CLASSES),
    "zero features": lambda: Graph(EDGES, torch.zeros(4, 3).to_sparse_csr(), CLASSES),
}


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    save_graph(GRAPHS["dense"](), tmp_path / "graph")
    return tmp_path / "graph"


def same(a: torch.Tensor | None, b: torch.Tensor | None) -> bool:
    if a is None or b is None:
        return a is b
    a, b = a.to_dense(), b.to_dense()
    return (
        a.dtype == b.dtype
        and torch.equal(a.isnan(), b.isnan())
        and torch.equal(a.nan_to_num(), b.nan_to_num())
    )


def read_meta(path: Path) -> dict:
    return json.loads((path / "meta.json").read_text())


def edit_meta(path: Path, *, without: str = "", **changes: object) -> None:
    """Change entries, and the checksum with them, as somebody would who means harm."""
    meta = {
        key: value for key, value in read_meta(path).items() if key not in ("checksum", without)
    }
    (path / "meta.json").write_text(json.dumps(signed(meta | changes)))


def signed_anew(path: Path) -> None:
    """Give a folder the checksums of its present files."""
    sums = read_meta(path)["checksums"]
    edit_meta(path, checksums={name: file_checksum(path / name) for name in sums})


@pytest.mark.parametrize("kind", GRAPHS)
def test_a_graph_comes_back_as_it_was(kind: str, tmp_path: Path) -> None:
    graph = GRAPHS[kind]()
    save_graph(graph, tmp_path / "new" / "folder")
    loaded = load_graph(str(tmp_path / "new" / "folder"))
    for name in ("features", "labels", *SPLITS):
        assert same(getattr(loaded, name), getattr(graph, name)), name
    for name in ("indptr", "indices", "values"):
        assert same(getattr(loaded.adjacency, name), getattr(graph.adjacency, name)), name
    assert loaded.features.layout == graph.features.layout
    assert [part.dtype for part in stored(loaded.features)] == [
        part.dtype for part in stored(graph.features)
    ]
    for name in ("num_classes", "weighted", "task", "multilabel", "num_nodes", "num_edges"):
        assert getattr(loaded, name) == getattr(graph, name), name
    assert repr(loaded) == repr(graph)


def test_a_loaded_graph_can_be_saved_again(saved: Path, tmp_path: Path) -> None:
    save_graph(load_graph(saved), tmp_path / "copy")
    for file in saved.iterdir():
        assert (tmp_path / "copy" / file.name).read_bytes() == file.read_bytes()


def test_a_scaled_graph_is_not_saved_as_if_it_were_not(saved: Path, tmp_path: Path) -> None:
    graph = load_graph(saved)
    scaled, _ = scale_graph(graph, "standard")
    with refused():
        save_graph(scaled, tmp_path / "scaled")
    assert not (tmp_path / "scaled").exists()
    save_graph(scaled.with_features(scaled.features), tmp_path / "scaled")
    assert torch.equal(load_graph(tmp_path / "scaled").features, scaled.features)


def test_ones_are_not_stored_as_weights(saved: Path) -> None:
    assert not (saved / "weights_0.npy").exists()
    assert read_meta(saved)["relations"][0]["weighted"] is False


def test_nothing_is_read_before_it_is_used(saved: Path) -> None:
    graph = load_graph(saved)
    # A mapping shows what the file holds when a page is first touched, a copy what it held before.
    array = np.load(saved / "features_0.npy", mmap_mode="r+")
    array[2, 1] = 77
    array.flush()
    assert graph.features[2, 1] == 77


def test_changing_a_loaded_graph_does_not_change_the_file(saved: Path) -> None:
    before = (saved / "features_0.npy").read_bytes()
    graph = load_graph(saved)
    graph.features[0, 0] = 99
    assert graph.features[0, 0] == 99
    assert (saved / "features_0.npy").read_bytes() == before


def test_an_existing_path_is_not_overwritten(saved: Path) -> None:
    before = {file.name: file.read_bytes() for file in saved.iterdir()}
    with refused(FileExistsError):
        save_graph(GRAPHS["weighted"](), saved)
    assert {file.name: file.read_bytes() for file in saved.iterdir()} == before
    assert list(saved.parent.iterdir()) == [saved]


def test_a_path_that_appears_during_the_write_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "graph"
    describe = store.write_meta

    def meanwhile(*given: Any, **named: Any) -> None:
        monkeypatch.undo()
        save_graph(GRAPHS["double"](), path)
        describe(*given, **named)

    monkeypatch.setattr(store, "write_meta", meanwhile)
    with refused(FileExistsError):
        save_graph(GRAPHS["dense"](), path)
    assert load_graph(path).features.dtype == torch.float64
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("last", ["indptr_0", "features_0", "test"])
def test_an_interrupted_write_leaves_nothing_that_loads(
    last: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = np.save
    left: list[Path] = []

    def stop(file, array: np.ndarray) -> None:
        write(file, array)
        if Path(file.name).stem == last:
            left.append(Path(file.name).parent)
            raise KeyboardInterrupt

    monkeypatch.setattr(np, "save", stop)
    # As if the process were killed: no cleaning up either.
    monkeypatch.setattr(shutil, "rmtree", lambda *_, **__: None)
    with pytest.raises(KeyboardInterrupt):
        save_graph(GRAPHS["dense"](), tmp_path / "graph")
    with refused(FileNotFoundError):
        load_graph(tmp_path / "graph")
    with refused():
        load_graph(left[0])
    monkeypatch.undo()
    save_graph(GRAPHS["dense"](), tmp_path / "graph")
    assert load_graph(tmp_path / "graph").num_nodes == 4


def test_a_failed_write_cleans_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(np, "save", full)
    with refused(OSError):
        save_graph(GRAPHS["dense"](), tmp_path / "graph")
    assert not list(tmp_path.iterdir())


def test_a_missing_path_is_named(tmp_path: Path) -> None:
    with refused(FileNotFoundError):
        load_graph(tmp_path / "nowhere")


def test_other_folders_and_files_are_not_graphs(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("text")
    for name in ("folder", "file"):
        with refused():
            load_graph(tmp_path / name)


@pytest.mark.parametrize("text", ["{", "[]", '{"format": "other"}'])
def test_another_meta_json_is_not_a_graph(text: str, saved: Path) -> None:
    (saved / "meta.json").write_text(text)
    with refused():
        load_graph(saved)


def test_an_unknown_version_is_refused(saved: Path) -> None:
    edit_meta(saved, version=7)
    with refused():
        load_graph(saved)


def test_a_missing_entry_of_meta_is_named(saved: Path) -> None:
    edit_meta(saved, without="kinds")
    with refused():
        load_graph(saved)


@pytest.mark.parametrize(
    "name", ["indptr_0", "indices_0", "features_0", "labels", "train", "val", "test"]
)
def test_a_missing_array_is_named(name: str, saved: Path) -> None:
    (saved / f"{name}.npy").unlink()
    with refused(FileNotFoundError):
        load_graph(saved)


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("features_0", np.zeros((4, 2), np.float32)),
        ("features_0", np.zeros((4, 3), np.float64)),
        ("indptr_0", np.zeros(4, np.int64)),
        ("labels", np.zeros((4, 3), np.int64)),
        ("train", np.zeros(2, np.int64)),
    ],
)
def test_an_array_that_is_not_what_meta_says_is_named(
    name: str, array: np.ndarray, saved: Path
) -> None:
    np.save(saved / f"{name}.npy", array)
    with refused():
        load_graph(saved)


@pytest.mark.parametrize("keep", [0, 10, 140])
def test_a_truncated_array_is_named(keep: int, saved: Path) -> None:
    whole = (saved / "features_0.npy").read_bytes()
    (saved / "features_0.npy").write_bytes(whole[:keep])
    with refused():
        load_graph(saved)


@pytest.mark.parametrize("ids", [["a", "ü", "p-991"], [7, -3, 2**40]])
def test_names_come_back(tmp_path, ids):
    names = Names(pa.array(ids), ["yes", "no, 'never'"], ["age", "größe"])
    graph = Graph([[0], [1]], torch.randn(3, 2), [0, 1, -1], names=names)
    save_graph(graph, tmp_path / "g")
    loaded = load_graph(tmp_path / "g").names
    assert loaded.nodes.to_pylist() == ids
    assert (loaded.classes, loaded.features) == (names.classes, names.features)


def test_a_graph_without_its_ids_is_refused(tmp_path):
    graph = Graph([[0], [1]], torch.randn(3, 2), names=Names(pa.array(["a", "b", "c"])))
    save_graph(graph, tmp_path / "g")
    (tmp_path / "g" / "ids_0.arrow").unlink()
    with refused(FileNotFoundError):
        load_graph(tmp_path / "g")


def test_a_kind_of_memory_that_is_none_is_refused(tmp_path: Path) -> None:
    save_graph(Graph([[0, 1], [1, 2]], torch.eye(3)), tmp_path / "g")
    with refused():
        load_graph(tmp_path / "g", memory="tape")
