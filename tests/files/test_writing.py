"""Files and folders appear under their name complete, or not at all."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.messages import refused
from vrgcn.files import writing
from vrgcn.files.writing import (
    DiskFullError,
    new_file,
    new_folder,
    remove_folder,
    remove_partial,
    write_text,
)


def full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_file_takes_its_name_when_all_of_it_is_there(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "a.bin"
    with new_file(path) as file:
        file.write(b"half")
        file.flush()
        assert not path.exists()
    assert path.read_bytes() == b"half"
    assert os.listdir(path.parent) == ["a.bin"]


def test_an_error_leaves_the_old_file_as_it_was_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_text(path, "old")
    with pytest.raises(TypeError), new_file(path) as file:
        file.writelines([b"new", "text"])
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_two_writers_of_one_name_do_not_mix_and_the_last_one_wins(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    with new_file(path) as one:
        one.write(b"one" * 1000)
        with new_file(path) as other:
            other.write(b"other")
        assert path.read_bytes() == b"other"
    assert path.read_bytes() == b"one" * 1000


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "theirs.txt").write_text("precious")
    (tmp_path / "link.txt").symlink_to(tmp_path / "theirs.txt")
    write_text(tmp_path / "link.txt", "ours")
    assert (tmp_path / "theirs.txt").read_text() == "precious"
    assert (tmp_path / "link.txt").read_text() == "ours"
    assert not (tmp_path / "link.txt").is_symlink()


def test_a_new_file_has_the_mode_of_any_other(tmp_path: Path) -> None:
    write_text(tmp_path / "a", "")
    (tmp_path / "b").write_text("")
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_told_by_file_disk_and_sizes(tmp_path, monkeypatch, code) -> None:
    def fails(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", fails)
    path = tmp_path / "a.bin"
    with pytest.raises(DiskFullError) as caught, new_file(path, size=2_500_000) as file:
        file.write(b"x")
    said = str(caught.value)
    mount = next(p for p in [tmp_path, *tmp_path.parents] if os.path.ismount(p))
    assert said.startswith(f"{path}: the disk at {mount} is full")
    assert "2.5 MB are needed" in said
    assert "are free" in said
    assert caught.value.errno == code
    assert not os.listdir(tmp_path)


def test_an_error_that_is_not_of_space_stays_itself(tmp_path: Path, monkeypatch) -> None:
    def fails(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", fails)
    with refused(OSError) as caught, new_file(tmp_path / "a"):
        pass
    assert not isinstance(caught.value, DiskFullError)


def test_a_folder_appears_whole_and_never_over_another(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "graph"
    with new_folder(path) as folder:
        (folder / "a").write_text("1")
        assert not path.exists()
    assert os.listdir(tmp_path) == ["graph"]
    with refused(FileExistsError), new_folder(path):
        pass
    monkeypatch.setattr(writing, "flush_folder", full)
    with pytest.raises(DiskFullError), new_folder(tmp_path / "other") as folder:
        (folder / "a").write_text("1")
    assert os.listdir(tmp_path) == ["graph"]


def test_a_folder_that_goes_loses_its_name_before_its_files(tmp_path: Path, monkeypatch) -> None:
    def die(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a").touch()
    with monkeypatch.context() as patch:
        patch.setattr(writing.shutil, "rmtree", die)
        with pytest.raises(KeyboardInterrupt):
            remove_folder(folder)
    assert not folder.exists()
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["a"]
    remove_partial(tmp_path)
    assert not list(tmp_path.iterdir())


def test_what_killed_writers_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / ".a.123.partial").write_text("")
    (tmp_path / ".b.456.partial").mkdir()
    (tmp_path / ".b.456.partial" / "inside").write_text("")
    (tmp_path / "kept.partial").write_text("")
    remove_partial(tmp_path)
    assert os.listdir(tmp_path) == ["kept.partial"]


def test_a_disk_too_full_for_a_folder_is_told_like_one_too_full_for_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "mkdir", full)
    with (
        refused(DiskFullError),
        new_folder(tmp_path / "step-1"),
    ):
        pass
    with refused(DiskFullError):
        write_text(tmp_path / "new" / "a.txt", "")
    assert not os.listdir(tmp_path)


def test_the_disk_that_is_named_is_the_one_that_a_link_leads_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "big").mkdir()
    (tmp_path / "run").symlink_to(tmp_path / "big")
    plain = os.path.ismount
    monkeypatch.setattr(os.path, "ismount", lambda p: p == tmp_path / "big" or plain(p))
    monkeypatch.setattr(os, "fsync", full)
    with refused(DiskFullError):
        write_text(tmp_path / "run" / "a.txt", "")


def test_the_names_of_new_folders_are_durable_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[Path] = []
    monkeypatch.setattr(writing, "flush_folder", flushed.append)
    write_text(tmp_path / "a" / "b" / "c.txt", "")
    assert flushed == [tmp_path, tmp_path / "a", tmp_path / "a" / "b"]


def test_a_file_system_that_cannot_flush_folders_is_no_obstacle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = os.fsync

    def flush(descriptor: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):
            raise OSError(errno.EINVAL, "Invalid argument")
        plain(descriptor)

    monkeypatch.setattr(os, "fsync", flush)
    write_text(tmp_path / "new" / "a.txt", "kept")
    assert (tmp_path / "new" / "a.txt").read_text() == "kept"


def test_a_folder_that_cannot_be_made_is_named_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with refused(NotADirectoryError):
        write_text(tmp_path / "file" / "a.txt", "")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with refused(FileNotFoundError):
        write_text(tmp_path / "link" / "deep" / "a.txt", "")


WRITE = """
import sys
from vrgcn.files.writing import new_file, new_folder
with new_file(sys.argv[1]) as file, new_folder(sys.argv[2]) as folder:
    file.write(b"half")
    (folder / "half").touch()
    print("written", flush=True)
    sys.stdin.read()
"""


def test_what_a_killed_writer_left_goes_with_the_next_of_that_name_and_no_sooner(
    tmp_path: Path,
) -> None:
    names = (tmp_path / "a[1].bin", tmp_path / "graph")

    def write() -> None:
        with new_file(names[0]) as file, new_folder(names[1]):
            file.write(b"whole")
        names[1].rmdir()

    def left() -> int:
        found = list(tmp_path.glob(".*.partial"))
        for path in found:
            os.utime(path, (0, 0))
        return len(found)

    command, pipe = [sys.executable, "-c", WRITE, *map(str, names)], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert left() == 2
        write()
        assert left() == 2  # of a process that is alive
        process.kill()
    with new_file(tmp_path / "another.bin"):
        pass
    assert left() == 2
    write()
    assert left() == 0
    assert names[0].read_bytes() == b"whole"
