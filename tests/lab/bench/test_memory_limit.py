"""A command under a hard limit of memory."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from lab.bench.memory_limit import DataLimit, GroupLimit, forget, memory_limit, run_limited

MEGA = 1 << 20


def allocate(size: int) -> list[str]:
    return [sys.executable, "-c", f"print(len(bytearray({size})))"]


def cached(file: Path) -> bool:
    """Whether the file's first page is in memory."""
    descriptor = os.open(file, os.O_RDONLY)
    try:
        os.preadv(descriptor, [bytearray(4096)], 0, os.RWF_NOWAIT)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def test_what_fits_runs_and_what_does_not_is_refused_or_killed():
    with memory_limit(100 * MEGA) as limit:
        assert run_limited(allocate(10 * MEGA), limit).code == 0
        assert run_limited(allocate(300 * MEGA), limit, stderr=-3).code != 0
    assert run_limited(allocate(300 * MEGA), None).code == 0


def test_where_no_group_can_be_made_the_limit_is_of_own_memory_and_says_so(tmp_path):
    with memory_limit(100 * MEGA, groups=tmp_path) as limit:
        assert isinstance(limit, DataLimit)
        assert "NOT counted" in limit.counts
        assert run_limited(allocate(10 * MEGA), limit).code == 0
        assert run_limited(allocate(300 * MEGA), limit, stderr=-3).code == 1  # a MemoryError


def test_a_group_that_does_not_limit_memory_is_not_taken_and_removed_again(tmp_path):
    (tmp_path / "cgroup.procs").touch()
    with memory_limit(100 * MEGA, groups=tmp_path) as limit:
        assert isinstance(limit, DataLimit)
    assert [file.name for file in tmp_path.iterdir()] == ["cgroup.procs"]


def test_a_group_counts_the_pages_of_files_and_is_gone_afterwards(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(bytes(64 * MEGA))
    forget(tmp_path)
    with memory_limit(16 * MEGA) as limit:
        if not isinstance(limit, GroupLimit):
            pytest.skip("no control group can be made here")
        ended = run_limited(["cat", str(file)], limit, every=0.01, stdout=-3)
        numbers = limit.numbers()
    assert ended.code == 0
    assert 8 * MEGA < numbers["peak"] <= 16 * MEGA
    assert numbers["limit_met"] > 0
    assert ended.most["cached"] > 4 * MEGA
    assert not limit.folder.exists()


def test_the_peak_of_a_commands_own_memory_is_seen():
    program = "x = bytearray(50 << 20); import time; time.sleep(0.3)"
    ended = run_limited([sys.executable, "-c", program], None, every=0.05)
    assert 50 * MEGA < ended.most["own"] < 150 * MEGA
    assert ended.seconds > 0.3


def test_forgotten_files_are_on_the_disk_alone(tmp_path):
    file = tmp_path / "deep" / "file"
    file.parent.mkdir()
    file.write_bytes(bytes(MEGA))
    try:
        assert cached(file)
    except OSError:
        pytest.skip("the file system cannot tell what is in memory")
    for _ in range(20):  # a page that another processor is just at work on stays that once
        forget(tmp_path)
        if not cached(file):
            break
        time.sleep(0.1)
    assert not cached(file)
    assert file.read_bytes() == bytes(MEGA)
