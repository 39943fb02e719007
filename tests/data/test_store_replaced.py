"""A graph's folder that is replaced by another while it is opened: all of one, or all of the other.

The two graphs have files of the same names, shapes and types, so that nothing but their numbers
tells them apart.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
import torch

from tests.files.replacing import REPLACE, before_opening, replaced_at_every_moment, there_and_back
from tests.messages import refused
from vrgcn.data.opening import open_graph
from vrgcn.data.store import load_graph, save_graph
from vrgcn.files import folder as open_folder
from vrgcn.files.folder import FolderReplacedError
from vrgcn.graph.graph import Graph
from vrgcn.graph.names import Names
from vrgcn.graph.scaling import scale_graph
from vrgcn.graph.validation import SPLITS

Contents = tuple[object, ...]


def graph(kind: str) -> Graph:
    """Six nodes, directed and weighted edges, ids; no array is the same in the other graph."""
    place = ("old", "new").index(kind)
    return Graph(
        torch.tensor([[5, 5, 4, 4], [0, 3, 0, 5]] if place else [[0, 1, 2, 3], [1, 2, 3, 1]]),
        torch.arange(18.0).reshape(6, 3).roll(place, 0) ** (1 + place),
        torch.tensor([0, 1, 2, 0, 0, 0]).roll(place),
        edge_weight=torch.tensor([0.5, 2.0, 1.0, 3.0]) + place,
        train=[2 * place, 2 * place + 1],
        val=[2 * place + 2],
        test=[2 * place + 3],
        names=Names(pa.array([f"{kind}-{i}" for i in range(6)]), ["a", "b", "c"], list("xyz")),
    )


def contents(found: Graph) -> Contents:
    A, reverse = found.adjacency, found.adjacency.transposed
    assert found.names.nodes is not None
    assert found.labels is not None
    return (
        *(A.indptr.tolist(), A.indices.tolist(), A.values.tolist()),
        *(reverse.indptr.tolist(), reverse.indices.tolist(), reverse.values.tolist()),
        *(found.features.tolist(), found.labels.tolist(), found.names.nodes.to_pylist()),
        *(found.split(name).tolist() for name in SPLITS),
    )


def make(home: Path) -> None:
    for kind in ("old", "new"):
        save_graph(graph(kind), home / kind)


def make_with_derived(home: Path) -> None:
    make(home)
    for kind in ("old", "new"):
        scaled(home / kind)
        assert len(list((home / kind / "derived").glob("*.npy"))) == 1


def loaded(folder: Path) -> Graph:
    return load_graph(folder)


def verified(folder: Path) -> Graph:
    return open_graph(None, folder, verify=True).graph


def scaled(folder: Path) -> Graph:
    return scale_graph(open_graph(None, folder, memory="disk").graph, "standard")[0]


READ: dict[str, tuple[Callable[[Path], None], Callable[[Path], Graph]]] = {
    "loaded": (make, loaded),
    "verified": (make, verified),
    "with derived tables": (make_with_derived, scaled),
    "with tables to derive": (make, scaled),
}


def told(read: Callable[[Path], Graph]) -> Callable[[Path], Contents | str]:
    """Return the contents of the graph that is read; "refused" if it is reported as replaced."""

    def call(folder: Path) -> Contents | str:
        try:
            return contents(read(folder))
        except FolderReplacedError as error:
            right = f"{folder} was removed, or replaced by another" in str(error)
            return "refused" if right else str(error)

    return call


@pytest.mark.parametrize(
    ("how", "replace", "relative"),
    [
        *(("loaded", replace, True) for replace in REPLACE),
        *((how, "renamed", True) for how in READ if how != "loaded"),
        ("loaded", "renamed", False),
        ("with derived tables", "linked", False),
    ],
)
def test_a_graph_that_is_replaced_while_it_is_opened_is_wholly_one_of_the_two(
    how: str, replace: str, relative: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if relative and not open_folder._RELATIVE:
        pytest.skip("this system opens no files relative to a folder")
    monkeypatch.setattr(open_folder, "_RELATIVE", relative)
    make, read = READ[how]
    (tmp_path / "right").mkdir()
    make(tmp_path / "right")
    whole = [contents(read(tmp_path / "right" / kind)) for kind in ("old", "new")]
    assert all(one != other for one, other in zip(*whole, strict=True))
    found = list(replaced_at_every_moment(tmp_path, make, replace, told(read)))
    for one in found:
        assert one in (*whole, "refused"), one
    assert found[-1] == whole[0]
    if relative:
        assert found[0] == whole[1]
        # Derived tables lie where the name leads, and are refused if they are not there any more.
        assert "refused" not in found or replace == "removed" or read is scaled
    else:
        assert "refused" in found


def test_a_graph_that_is_replaced_again_and_again_is_never_mixed(tmp_path: Path) -> None:
    make(tmp_path)
    folder, other = tmp_path / "old", tmp_path / "new"
    whole = [contents(load_graph(path)) for path in (folder, other)]
    for moment in range(1, 20):
        with before_opening(moment, lambda: there_and_back(folder, other), every=True):
            assert contents(load_graph(folder)) in whole


def test_a_graph_that_is_removed_while_it_is_opened_is_said_to_be(tmp_path: Path) -> None:
    make(tmp_path)
    folder = tmp_path / "old"
    with (
        before_opening(5, lambda: [file.unlink() for file in folder.iterdir()] and folder.rmdir()),
        refused(FolderReplacedError),
    ):
        load_graph(folder)
