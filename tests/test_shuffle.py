"""Random orders of tests that can be repeated, and what is told of those that failed."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from tests.flakes import _failures
from tests.shuffle import ordered

NAMES = [f"tests/test_{file}.py::test_{number}" for file in "abcdefgh" for number in range(8)]


def test_an_order_has_every_test_once_file_by_file_and_follows_from_its_seed() -> None:
    first, second = ordered(NAMES, "1"), ordered(NAMES, "2")
    assert sorted(first) == sorted(second) == NAMES
    assert first == ordered(NAMES, "1") != second
    assert len(list(groupby(first, lambda name: name.split("::")[0]))) == 8
    files = [[name for name in first if f"_{file}." in name] for file in "ab"]
    assert files[0] != sorted(files[0])
    assert [x[-1] for x in files[0]] != [x[-1] for x in files[1]]


def test_the_order_of_a_file_is_kept(tmp_path: Path) -> None:
    (tmp_path / "gw0.txt").write_text(f"{NAMES[5]}\n{NAMES[2]}\n")
    assert ordered(NAMES, str(tmp_path / "gw0.txt")) == [NAMES[5], NAMES[2]]


def test_a_test_that_failed_comes_with_those_before_it_in_its_process(tmp_path: Path) -> None:
    (tmp_path / "gw0.txt").write_text("\n".join(NAMES[:4]))
    (tmp_path / "gw1.txt").write_text("\n".join(NAMES[4:]))
    (tmp_path / "failed.txt").write_text(f"gw1 {NAMES[6]}\n")
    ((name, replay),) = _failures(tmp_path, 1)
    assert name == NAMES[6]
    assert replay.read_text().splitlines() == NAMES[4:7]


def test_a_run_that_ended_without_a_failed_test_is_told_too(tmp_path: Path) -> None:
    assert not list(_failures(tmp_path, 0))
    ((name, _),) = _failures(tmp_path, 3)
    assert name.startswith("pytest ended with code 3, see ")
