"""Folders whose files are read as of one moment."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from tests.messages import refused
from vrgcn.files import folder as open_folder
from vrgcn.files.folder import FolderReplacedError, OpenFolder, path_of
from vrgcn.files.tensors import map_tensors, write_tensors


@pytest.fixture(params=[True, False], ids=["relative", "compared"])
def place(request, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    if request.param and not open_folder._RELATIVE:
        pytest.skip("this system opens no files relative to a folder")
    monkeypatch.setattr(open_folder, "_RELATIVE", request.param)
    (tmp_path / "a" / "inner").mkdir(parents=True)
    (tmp_path / "a" / "x").write_text("old")
    (tmp_path / "a" / "inner" / "y").write_text("inside")
    (tmp_path / "a" / "loop").symlink_to("loop")
    return tmp_path / "a"


def test_files_of_a_folder_and_of_those_within_are_read(place: Path) -> None:
    with OpenFolder(place) as folder:
        assert folder.read("x") == b"old"
        assert folder.files() == ["x"]
        assert [folder.is_file(name) for name in ("x", "inner", "z", "x/z", "loop", "inner/y")] == [
            *(True, False, False, False, False, True)
        ]
        with folder.within("inner") as inner, inner.open("y") as file:
            assert file.read() == b"inside"
            assert file.name == str(place / "inner" / "y")


def test_what_cannot_be_opened_is_told_by_all_of_its_name(place: Path) -> None:
    with OpenFolder(place) as folder, pytest.raises(FileNotFoundError) as told:
        folder.open("z")
    assert str(place / "z") in str(told.value)


def test_no_file_stays_open(place: Path) -> None:
    before = len(os.listdir("/dev/fd"))
    with OpenFolder(place) as folder, folder.within("inner") as inner:
        assert inner.files() == ["y"]
    with pytest.raises(ValueError, match="mine"), OpenFolder(place):
        raise ValueError("mine")
    assert len(os.listdir("/dev/fd")) == before


def test_an_error_while_a_folder_was_replaced_says_so_and_others_are_left(place: Path) -> None:
    with refused(FolderReplacedError):
        _fail(place, ValueError("such as numbers that do not agree"))
    place.mkdir()
    with pytest.raises(KeyError):
        _fail(place, KeyError("a fault of ours"))


def _fail(place: Path, error: Exception) -> None:
    with OpenFolder(place):
        place.rename(place.with_name(f"after {type(error).__name__}"))
        raise error


def test_tensors_are_those_of_the_open_file_whatever_has_its_name(tmp_path: Path) -> None:
    for name, value in (("a", 1.0), ("b", 2.0)):
        with open(tmp_path / name, "wb") as file:
            write_tensors(file, {"w": torch.full((3,), value)}, {"said": name})
    with open(tmp_path / "a", "rb") as file:
        if path_of(file) == file.name:
            pytest.skip("this system has no paths of open files")
        (tmp_path / "b").replace(tmp_path / "a")
        tensors, metadata = map_tensors(file)
    assert tensors["w"].tolist() == [1, 1, 1]
    assert metadata == {"said": "a"}
