"""Tables that are computed from a graph on disk, once, and kept in its folder."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tests.messages import refused
from vrgcn import Graph, GraphSAGE, load_graph, save_graph
from vrgcn.data.opening import open_graph
from vrgcn.data.store import verify_graph
from vrgcn.data.store_derived import DERIVED, DerivedTables
from vrgcn.engine.setup import set_up
from vrgcn.graph.mapped import Tell
from vrgcn.graph.scaling import Scaling, scale_graph
from vrgcn.runs.store_watch import StoreWatch


@pytest.fixture
def store(tmp_path: Path) -> Path:
    x = torch.arange(12.0).reshape(6, 2).square()
    labels = torch.tensor([0, 1, 0, 1, 0, 1])
    save_graph(Graph([[0, 1, 2], [1, 2, 3]], x, labels, train=[0, 1, 2]), tmp_path / "graph")
    return tmp_path / "graph"


def tables(store: Path) -> list[Path]:
    return sorted((store / DERIVED).glob("*.npy"))


def test_scaled_features_are_made_once_and_found_again(store, monkeypatch):
    first, scaling = scale_graph(load_graph(store, memory="disk"), "standard")
    assert torch.equal(first.features, scaling.apply(load_graph(store).features))
    assert len(tables(store)) == 1

    def again(*_: object) -> None:
        raise AssertionError("computed a second time")

    monkeypatch.setattr(Scaling, "_fill", again)
    second, _ = scale_graph(load_graph(store, memory="disk"), "standard")
    assert torch.equal(first.features, second.features)


def test_other_scalings_and_other_graphs_have_tables_of_their_own(store, tmp_path):
    scale_graph(load_graph(store, memory="disk"), "standard")
    scale_graph(load_graph(store, memory="disk"), "row")
    assert len(tables(store)) == 2
    changed = load_graph(store)
    save_graph(changed.with_features(changed.features + 1), tmp_path / "other")
    (tmp_path / "other" / DERIVED).symlink_to(store / DERIVED)
    graph, scaling = scale_graph(load_graph(tmp_path / "other", memory="disk"), "row")
    assert torch.equal(graph.features, scaling.apply(changed.features + 1))


def test_what_a_killed_process_left_of_a_table_goes_when_it_is_made(store):
    scale_graph(load_graph(store, memory="disk"), "standard")
    (table,) = tables(store)
    left = table.with_name(f".{table.name}.0123.partial")
    table.rename(left)
    os.utime(left, (0, 0))
    scale_graph(load_graph(store, memory="disk"), "standard")
    assert tables(store) == [table]
    assert not left.exists()


def filled_with(value: float) -> Callable[[torch.Tensor, Tell], None]:
    def fill(out: torch.Tensor, tell: Tell) -> None:
        out.fill_(value)

    return fill


def test_a_writer_that_fails_leaves_nothing(store):
    derived = DerivedTables(store / DERIVED, "a graph")

    def broken(out: torch.Tensor, tell: Tell) -> None:
        out.fill_(1)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        derived.table("x", (3, 2), torch.float32, broken)
    assert not list((store / DERIVED).iterdir())
    made = derived.table("x", (3, 2), torch.float32, filled_with(2))
    assert torch.equal(made, torch.full((3, 2), 2.0))


def test_what_is_made_is_told_and_what_is_there_is_not(store):
    told: list[tuple[str, float]] = []

    def opened() -> Graph:
        found = open_graph(None, store, memory="disk", on_fill=lambda *one: told.append(one))
        graph, _ = scale_graph(found.graph, "standard")
        set_up(GraphSAGE(graph.num_features, 4, 2), graph, preprocess=True)
        return graph

    opened()
    assert {what for what, _ in told} == {"features", "averages mean"}
    for name in ("features", "averages mean"):
        shares = [done for what, done in told if what == name]
        assert shares == sorted(shares)
        assert shares[-1] == 1
    told.clear()
    opened()
    assert not told


def test_a_table_without_its_note_is_made_again(store):
    derived = DerivedTables(store / DERIVED, "a graph")
    derived.table("x", (3,), torch.float32, filled_with(2))
    next((store / DERIVED).glob("*.json")).unlink()
    made = derived.table("x", (3,), torch.float32, filled_with(3))
    assert made.tolist() == [3, 3, 3]


def test_verifying_removes_a_damaged_table_and_keeps_a_good_one(store):
    scale_graph(load_graph(store, memory="disk"), "standard")
    verify_graph(store)
    (file,) = tables(store)
    note = json.loads(file.with_suffix(".json").read_text())
    assert note["what"] == "features"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    verify_graph(store)
    assert not list((store / DERIVED).iterdir())


def test_a_file_of_another_size_is_refused_by_name(store):
    scale_graph(load_graph(store, memory="disk"), "standard")
    (file,) = tables(store)
    whole = file.read_bytes()
    for content in (whole[:-4], b""):
        file.write_bytes(content)
        with refused():
            scale_graph(load_graph(store, memory="disk"), "standard")


def test_what_is_derived_is_no_change_of_the_graph(store):
    told: list[str] = []
    watch = StoreWatch(store, told.append)
    scale_graph(load_graph(store, memory="disk"), "standard")
    watch.check()
    assert not told


def test_files_of_others_in_a_linked_folder_are_left_alone(store, tmp_path):
    """Only what is called as a derived table is removed if it has no note."""
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "mine.npy").write_bytes(b"numbers")
    (theirs / f"{'0' * 32}.npy").write_bytes(b"a table without its note")
    (store / DERIVED).symlink_to(theirs)
    verify_graph(store)
    assert [path.name for path in theirs.iterdir()] == ["mine.npy"]
