"""Parts that change, are cut shorter or disappear while several processes train on them."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
import torch

from tests.cli.conftest import small_graph
from tests.distributed.processes import in_processes
from vrgcn.cli import main
from vrgcn.distributed.partitioning import write_parts
from vrgcn.distributed.watching import PartWatch
from vrgcn.runs import store_watch
from vrgcn.runs.checkpoint import checkpoints_in

Told = tuple[int, str, str]
SMALL = ("--hidden", "4", "--batch-size", "20", "--estimator", "two-way", "--fanout", "0")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with two parts of a graph."""
    graph = small_graph()
    write_parts(
        graph, torch.arange(graph.num_nodes) % 2, tmp_path / "parts", parts=2, scaling="none"
    )
    return tmp_path


def training(place: Path, run: str = "run") -> list[str]:
    often = ("--epochs", "3", "--checkpoint-every", "1")
    return ["train", "--graph", str(place / "parts"), "--out", str(place / run), *often, *SMALL]


def change(part: Path) -> None:
    file = part / "features_0.npy"
    before = file.stat().st_mtime_ns
    with open(file, "r+b") as opened:
        opened.seek(-4, os.SEEK_END)
        opened.write(b"\0\0\0\0")
    os.utime(file, ns=(0, before + 1))  # in case clocks tick too slowly to show it


def cut(part: Path) -> None:
    os.truncate(part / "features_0.npy", 10)


def cut_places(part: Path) -> None:
    os.truncate(part / "part.safetensors", 10)


def change_description(part: Path) -> None:
    os.truncate(part.parent / "parts.json", 10)


def remove(part: Path) -> None:
    for file in part.iterdir():
        file.unlink()
    part.rmdir()


def rename(part: Path) -> None:
    part.parent.rename(part.parent.with_name("elsewhere"))


def command(line: list[str]) -> Told:
    """Return the output of a command of vrgcn in this process."""
    code, out, err = 0, io.StringIO(), io.StringIO()
    try:
        with redirect_stdout(out), redirect_stderr(err):
            main(line)
    except SystemExit as end:
        code = int(end.code or 0)
    return code, out.getvalue(), err.getvalue()


def changed_at_the_end_of_an_epoch(place: Path, act: Callable[[Path], None]) -> Told:
    """Train; the second process's part is changed before its files are looked at in epoch 2."""
    looked = PartWatch.epoch

    def epoch(self: PartWatch, point) -> None:
        if self.group.rank == 1 and point.epoch == 2:
            act(place / "parts" / "part-00001")
        looked(self, point)

    PartWatch.epoch = epoch  # type: ignore[method-assign]
    return command(training(place))


@pytest.mark.parametrize(
    ("act", "file"),
    [
        (change, "part-00001/features_0.npy"),
        (cut_places, "part-00001/part.safetensors"),
        (change_description, "parts.json"),
    ],
)
def test_a_part_that_changes_in_one_process_stops_all_before_anything_is_written(
    act: Callable[[Path], None], file: str, place: Path
) -> None:
    found = in_processes(2, changed_at_the_end_of_an_epoch, place, act, join=False)
    assert [code for code, _, _ in found] == [1, 1], found
    told = "".join(err for _, _, err in found)
    assert told.count(f"{file} was changed while training read it") == 1
    assert "Traceback" not in told
    lines = (place / "run" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["epoch"] for line in lines] == [1]
    (kept,) = checkpoints_in(place / "run" / "checkpoints")
    assert json.loads((kept / "part-00000" / "state.json").read_text())["position"]["epoch"] == 1


def changed_after_a_step(place: Path, act: Callable[[Path], None]) -> Told:
    """Train; the second process's part is changed in the third step, and looked at after each."""
    store_watch.SECONDS = -1.0
    looked, steps = PartWatch.step, []

    def step(self: PartWatch, done: int, total: int) -> None:
        steps.append(done)
        if self.group.rank == 1 and len(steps) == 3:
            act(place / "parts" / "part-00001")
        looked(self, done, total)

    PartWatch.step = step  # type: ignore[method-assign]
    return command(training(place))


def test_a_part_that_is_cut_is_found_at_the_next_look_within_an_epoch(place: Path) -> None:
    found = in_processes(2, changed_after_a_step, place, cut, join=False)
    assert [code for code, _, _ in found] == [1, 1], found
    told = "".join(err for _, _, err in found)
    assert told.count("part-00001/features_0.npy was changed while training read it") == 1
    assert not checkpoints_in(place / "run" / "checkpoints")


@pytest.mark.parametrize("act", [remove, rename])
def test_parts_that_disappear_are_told_once_and_the_run_ends(
    act: Callable[[Path], None], place: Path
) -> None:
    found = in_processes(2, changed_after_a_step, place, act, join=False)
    assert [code for code, _, _ in found] == [0, 0], found
    told = "".join(out + err for _, out, err in found).replace("\n", " ")
    assert told.count("has disappeared since training began") == 1
    assert "cannot be resumed or predicted without it" in told
    assert len((place / "run" / "metrics.jsonl").read_text().splitlines()) == 3
    assert (place / "run" / "result.json").is_file()
