"""A graph on disk that changes while it is trained on."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
import torch

from tests.messages import refused
from vrgcn import Graph, save_graph
from vrgcn.files.folder import OpenFolder
from vrgcn.runs.store_watch import StoreChangedError, StoreWatch


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_graph(Graph([[0], [1]], torch.ones(3, 2)), tmp_path / "graph")
    return tmp_path / "graph"


def test_a_graph_that_nobody_touches_raises_nothing(folder: Path) -> None:
    told: list[str] = []
    watch = StoreWatch(folder, told.append)
    watch.check()
    (folder / "features_0.npy").read_bytes()
    watch.check()
    assert not told


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    edges = {("user", "bought", "item"): [[0, 1], [0, 0]], ("user", "knows", "user"): [[0], [1]]}
    save_graph(Graph.from_kinds({"user": torch.ones(2, 1), "item": 1}, edges), tmp_path / "shop")
    return tmp_path / "shop"


@pytest.mark.parametrize(("graph", "name"), [("folder", "indices_0"), ("shop", "indices_1")])
def test_a_file_that_is_written_to_is_named(
    graph: str, name: str, request: pytest.FixtureRequest
) -> None:
    folder = request.getfixturevalue(graph)
    watch = StoreWatch(folder, print)
    file = folder / f"{name}.npy"
    with open(file, "r+b") as opened:
        opened.write(b"\x93")  # the same byte that was there: the write is what counts
    os.utime(file, ns=(0, file.stat().st_mtime_ns + 1))  # where clocks tick too slowly to show it
    with refused(StoreChangedError):
        watch.check()


def test_a_file_that_grows_is_named(folder: Path) -> None:
    watch = StoreWatch(folder, print)
    file = folder / "features_0.npy"
    before = file.stat()
    with open(file, "ab") as opened:
        opened.write(b"x")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    with refused(StoreChangedError):
        watch.check()


@pytest.mark.parametrize("again", [False, True], ids=["gone", "another in its place"])
def test_a_graph_that_is_gone_is_told_once_and_is_no_reason_to_stop(
    folder: Path, again: bool
) -> None:
    told: list[str] = []
    watch = StoreWatch(folder, told.append)
    folder.rename(folder.with_name("kept"))
    if again:
        shutil.copytree(folder.with_name("kept"), folder)
    watch.check()
    watch.check()
    assert len(told) == 1
    assert ("was replaced by another" if again else "has disappeared") in told[0]


def test_what_is_watched_is_what_was_opened_whatever_has_its_name(folder: Path) -> None:
    told: list[str] = []
    with OpenFolder(folder) as opened:
        folder.rename(folder.with_name("kept"))
        shutil.copytree(folder.with_name("kept"), folder)
        watch = StoreWatch(opened, told.append)
    watch.check()
    assert len(told) == 1
    assert "was replaced by another" in told[0]


def test_a_file_that_was_cut_is_found_within_a_second(folder: Path) -> None:
    now = 100.0
    watch = StoreWatch(folder, print, lambda: now)
    os.truncate(folder / "features_0.npy", 10)
    now += 0.75
    watch.glance()  # it was looked at less than a second ago
    now += 0.25
    with refused(StoreChangedError):
        watch.glance()
