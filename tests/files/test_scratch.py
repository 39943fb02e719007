"""Scratch folders: gone afterwards, and those of killed processes with the next one."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from vrgcn.files import scratch
from vrgcn.files.scratch import scratch_folder

HOLD = """
import sys
from pathlib import Path
from vrgcn.files.scratch import scratch_folder
with scratch_folder(Path(sys.argv[1])) as folder:
    (folder / "table.bin").write_bytes(b"0" * 1000)
    print(folder, flush=True)
    sys.stdin.read()
"""


def aged(folder: Path) -> None:
    before = time.time() - 1000
    os.utime(folder, (before, before))


def test_a_folder_is_gone_after_use_and_after_an_error(tmp_path: Path) -> None:
    with scratch_folder(tmp_path / "new") as folder:
        (folder / "a").write_text("x")
    assert not os.listdir(tmp_path / "new")
    with pytest.raises(FileNotFoundError), scratch_folder(tmp_path / "new") as folder:
        (folder / "b").read_text()
    assert not os.listdir(tmp_path / "new")


def test_what_a_killed_process_left_is_removed_and_what_is_in_use_is_not(tmp_path: Path) -> None:
    command, pipe = [sys.executable, "-c", HOLD, str(tmp_path)], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        folder = Path(process.stdout.readline().strip())
        aged(folder)
        with scratch_folder(tmp_path):
            assert (folder / "table.bin").exists()
        process.kill()
    assert folder.exists()
    with scratch_folder(tmp_path):
        assert not folder.exists()


def test_a_folder_that_was_just_made_and_a_link_are_left(tmp_path: Path) -> None:
    (tmp_path / ".scratch-new").mkdir()
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "precious").write_text("x")
    (tmp_path / ".scratch-link").symlink_to(tmp_path / "theirs")
    aged(tmp_path / "theirs")
    scratch.remove_stale(tmp_path)
    assert (tmp_path / ".scratch-new").exists()
    assert (tmp_path / "theirs" / "precious").exists()
