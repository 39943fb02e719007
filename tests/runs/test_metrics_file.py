"""The lines of a run's metrics, on a disk that may be full for a while."""

from __future__ import annotations

import builtins
import errno
import json
from dataclasses import replace
from pathlib import Path

import pytest

from vrgcn.runs.record import MetricsFile
from vrgcn.training.state import Epoch


def point(number: int) -> Epoch:
    return Epoch(number, 0.5, None, 1.0, None, 1.0, 2.0)


def numbers(path: Path) -> list[int]:
    return [json.loads(line)["epoch"] for line in path.read_text().splitlines()]


def obeyed(write) -> bool:
    write()
    return True


def tolerated(write) -> bool:
    try:
        write()
    except OSError:
        return False
    return True


def test_each_epoch_is_a_line_at_once_and_a_file_from_before_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text("of another run\n")
    metrics = MetricsFile(path, obeyed)
    for number in (1, 2, 3):
        metrics.add(point(number))
        assert numbers(path) == list(range(1, number + 1))
    metrics.restore([point(1)])  # rolled back
    assert numbers(path) == [1]
    metrics.add(point(2))
    metrics.finish([point(1), point(2)])
    assert numbers(path) == [1, 2]


def test_a_score_that_came_after_its_line_is_written_in_the_end(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    metrics = MetricsFile(path, obeyed)
    metrics.add(point(1))
    metrics.finish([replace(point(1), val=0.75)])
    assert [json.loads(line)["val"] for line in path.read_text().splitlines()] == [0.75]


def test_half_a_line_is_taken_back_and_all_lines_are_there_with_room_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "metrics.jsonl"
    metrics = MetricsFile(path, tolerated)
    metrics.add(point(1))
    whole = open

    def torn(file, mode="r", **given):  # type: ignore[no-untyped-def]
        if mode == "a":
            with whole(file, "a") as opened:
                opened.write('{"epoch": 2, "lo')
            raise OSError(errno.ENOSPC, "No space left on device")
        return whole(file, mode, **given)

    monkeypatch.setattr(builtins, "open", torn)
    metrics.add(point(2))
    monkeypatch.undo()
    assert numbers(path) == [1]
    metrics.add(point(3))
    assert numbers(path) == [1, 2, 3]
