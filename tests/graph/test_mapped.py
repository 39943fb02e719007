"""Tables of zeros, in memory or in a file."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest
import torch

from tests.messages import refused
from vrgcn.files.writing import DiskFullError
from vrgcn.graph.mapped import zeros


def test_a_file_has_the_size_of_the_table_and_what_is_written_to_it(tmp_path: Path) -> None:
    file = tmp_path / "tables" / "0.bin"
    table = zeros((5, 3), torch.float16, file)
    assert file.stat().st_size == 5 * 3 * 2
    assert not table.any()
    table[2] = torch.tensor([1.0, 2.0, 3.0])
    held = torch.from_file(str(file), size=15, dtype=torch.float16).view(5, 3)
    assert torch.equal(held, table)


def test_a_file_that_was_there_reads_as_zeros(tmp_path: Path) -> None:
    file = tmp_path / "0.bin"
    file.write_bytes(b"\x7f" * 64)
    assert not zeros((4, 4), torch.float32, file).any()


@pytest.mark.parametrize("told", ["by its free space", "when the room is reserved"])
def test_a_table_that_the_disk_has_no_room_for_is_refused_before_it_is_used(
    told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the room reserved, the first write to a page that has none is a bus error."""
    if told == "by its free space":
        usage = shutil.disk_usage(tmp_path)._replace(free=100)
        monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    else:

        def full(*_: int) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(os, "posix_fallocate", full)
    with refused(DiskFullError):
        zeros((10, 25), torch.float32, tmp_path / "0.bin")
    assert not list(tmp_path.iterdir())


def test_the_room_of_a_table_is_reserved(tmp_path: Path) -> None:
    table = zeros((1000, 256), torch.float32, tmp_path / "0.bin")
    assert (tmp_path / "0.bin").stat().st_blocks * 512 >= table.nbytes
    assert zeros((0, 4), torch.float32, tmp_path / "1.bin").shape == (0, 4)


def test_a_table_that_memory_has_no_room_for_is_refused_by_its_size() -> None:
    with refused(MemoryError):
        zeros((1 << 42, 16), torch.float32)  # 256 TiB: more addresses than a process has
