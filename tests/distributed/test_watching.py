"""Parts that change, are cut shorter or disappear while several processes train on them."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
import torch

from tests.cli.conftest import small_graph
from tests.distributed.processes import commands, in_processes
from tests.waiting import LONG, wait_for
from vrgcn.cli import main
from vrgcn.distributed.partitioning import write_parts
from vrgcn.distributed.watching import PartWatch
from vrgcn.inference.saved import load_model
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
    file = part / "features.npy"
    before = file.stat().st_mtime_ns
    with open(file, "r+b") as opened:
        opened.seek(-4, os.SEEK_END)
        opened.write(b"\0\0\0\0")
    os.utime(file, ns=(0, before + 1))  # in case clocks tick too slowly to show it


def cut(part: Path) -> None:
    os.truncate(part / "features.npy", 10)


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
    store_watch._lease = lambda file: None  # nobody is held back
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
        (change, "part-00001/features.npy"),
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
    store_watch._lease = lambda file: None
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
    assert told.count("part-00001/features.npy was changed while training read it") == 1
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


def wanted_by_another(place: Path) -> Told:
    """Train; after the third step another process wants to cut a file of the second one's part."""
    file, looked, steps = place / "parts" / "part-00001" / "features.npy", PartWatch.step, []
    held: list[bool] = []
    # The system sends it when it begins to hold another process back, where this disk has leases.
    signal.signal(signal.SIGURG, lambda *_: held.append(True))
    others: list[subprocess.Popen[bytes]] = []

    def step(self: PartWatch, done: int, total: int) -> None:
        steps.append(done)
        if self.group.rank == 1 and len(steps) == 3:
            code = f"import os; os.truncate({str(file)!r}, 10)"
            others.append(subprocess.Popen([sys.executable, "-c", code]))
            wait_for(lambda: held or others[0].poll() is not None, "the file to be opened")
        looked(self, done, total)

    PartWatch.step = step  # type: ignore[method-assign]
    found = command(training(place))
    assert all(other.wait(LONG) == 0 for other in others)
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has leases")
def test_processes_stop_and_keep_everything_before_a_part_is_cut_shorter(place: Path) -> None:
    whole = commands(2, training(place, "whole"))
    assert [code for code, _, _ in whole] == [0, 0], whole
    features = place / "parts" / "part-00001" / "features.npy"
    before = features.read_bytes()
    found = in_processes(2, wanted_by_another, place, join=False)
    assert features.stat().st_size == 10
    told = "".join(out + err for _, out, err in found).replace("\n", " ")
    if "was changed while training read it" in told:
        pytest.skip("this disk gives no leases")
    assert [code for code, _, _ in found] == [143, 143], found
    assert told.count(f"another process wants to write to {features}") == 1
    features.write_bytes(before)
    resumed = commands(2, ["train", "--resume", str(place / "run")])
    assert [code for code, _, _ in resumed] == [0, 0], resumed
    ours, theirs = (load_model(place / name).model.state_dict() for name in ("run", "whole"))
    assert all(torch.equal(value, theirs[name]) for name, value in ours.items())
