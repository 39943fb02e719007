"""Checks that commands make before torch is loaded."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.messages import refused
from vrgcn.cli import early_checks
from vrgcn.cli.early_checks import check_file, check_method, check_new
from vrgcn.files.setting_names import flags_in_messages
from vrgcn.files.writing import check_utf8


def test_a_place_that_is_there_is_refused_with_what_to_choose(tmp_path: Path) -> None:
    check_new(tmp_path / "new")
    with refused(FileExistsError):
        check_new(tmp_path)
    with refused(FileExistsError):
        check_new(tmp_path, "folder")
    (tmp_path / "file").touch()
    with (
        flags_in_messages(),
        refused(NotADirectoryError),
    ):
        check_new(tmp_path / "file" / "new")


def test_a_file_that_is_not_there_is_refused_by_its_flag(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    check_file(tmp_path / "file", "--nodes")
    with refused(IsADirectoryError):
        check_file(tmp_path, "--nodes")
    with refused(FileNotFoundError):
        check_file(tmp_path / "gone", "--nodes")


def test_a_path_that_is_not_utf8_is_refused_with_who_cannot_read_it() -> None:
    check_utf8(Path("graphs/é"), "--graph", "config.toml")
    hostile = Path(os.fsdecode(b"graph\xff"))
    with refused():
        check_utf8(hostile, "--graph", "config.toml")


def test_metis_is_refused_where_it_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(early_checks, "find_spec", lambda name: None)
    check_method("ldg")
    check_method("auto")
    with refused():
        check_method("metis")
