"""A folder is used by one process at a time."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.messages import refused
from vrgcn.runs.folder import LOCK, LockedError, locked

HOLD = """
import sys
from pathlib import Path
from vrgcn.runs.folder import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_another_process_is_named_and_once_it_was_killed_no_obstacle(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with refused(LockedError, varying=r"\(\d+\)"):
            enter(tmp_path)
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    assert (tmp_path / LOCK).read_text() == str(holder.pid)  # still there
    enter(tmp_path)


def enter(folder: Path) -> None:
    with locked(folder):
        assert (folder / LOCK).read_text() == str(os.getpid())


def test_a_lock_leaves_nothing_behind_and_makes_its_folder(tmp_path: Path) -> None:
    enter(tmp_path / "new" / "one")
    assert os.listdir(tmp_path / "new" / "one") == []


def test_a_lock_is_given_back_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), locked(tmp_path):
        print(1 // 0)
    enter(tmp_path)


def test_a_file_that_its_last_owner_removes_meanwhile_guards_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, real = [], os.open

    def slow(path, *flags):  # type: ignore[no-untyped-def]
        descriptor = real(path, *flags)
        opened.append(os.fstat(descriptor).st_ino)
        if len(opened) == 1:
            os.unlink(path)  # between opening it and locking it
        return descriptor

    monkeypatch.setattr("vrgcn.runs.folder.os.open", slow)
    with locked(tmp_path):
        assert len(opened) == 2
        monkeypatch.undo()
        with pytest.raises(LockedError):
            enter(tmp_path)


def test_a_link_in_the_lock_s_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "theirs").write_text("precious")
    (tmp_path / LOCK).symlink_to(tmp_path / "theirs")
    with refused(OSError):
        enter(tmp_path)
    assert (tmp_path / "theirs").read_text() == "precious"


def test_a_file_system_without_locks_is_no_obstacle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr("vrgcn.runs.folder.fcntl.flock", no_locks)
    enter(tmp_path)
    assert not os.listdir(tmp_path)
