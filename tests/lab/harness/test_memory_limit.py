"""A command under a hard limit of memory."""

from __future__ import annotations

import os
import select
import sys
import time

import pytest

from lab.harness.memory_limit import (
    DataLimit,
    Ended,
    GroupLimit,
    forget,
    memory_limit,
    run_limited,
)
from tests.page_cache import forgotten, pages_in_memory
from tests.waiting import wait_for

MEGA = 1 << 20


def allocate(size: int) -> list[str]:
    return [sys.executable, "-c", f"print(len(bytearray({size})))"]


class Looks:
    """A limit that lets a command end once it was looked at.

    The command prints a line when it is ready, and ends when its input does.
    """

    kind = counts = "none"

    def __init__(self, limit: GroupLimit | None = None) -> None:
        self.limit = limit
        self.prefix = [] if limit is None else limit.prefix
        self.output, self.pipe = os.pipe()
        self.input, self.go = os.pipe()
        self.times: list[float] = []

    def run(self, *command: str) -> Ended:
        try:
            return run_limited(command, self, every=0.01, stdin=self.input, stdout=self.pipe)
        finally:
            for descriptor in (self.output, self.pipe, self.input):
                os.close(descriptor)

    def numbers(self) -> dict[str, int]:
        if len(self.times) < 2:
            ready, _, _ = select.select([self.output], [], [], 0)
            if ready:
                self.times.append(time.perf_counter())
            if len(self.times) == 2:  # this look came after the one that found it ready
                os.close(self.go)
        return {} if self.limit is None else self.limit.numbers()


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
    forgotten(file)
    with memory_limit(16 * MEGA) as limit:
        if not isinstance(limit, GroupLimit):
            pytest.skip("no control group can be made here")
        script = 'cat "$0" > /dev/null; echo ready; read line || true'
        ended = Looks(limit).run("sh", "-c", script, str(file))
        numbers = limit.numbers()
    assert ended.code == 0
    assert 8 * MEGA < numbers["peak"] <= 16 * MEGA
    assert numbers["limit_met"] > 0
    assert ended.most["cached"] > 4 * MEGA
    assert not limit.folder.exists()


def test_the_peak_of_a_commands_own_memory_and_its_seconds_are_seen():
    program = "x = bytearray(50 << 20); print(flush=True); open(0).read()"
    looks, start = Looks(), time.perf_counter()
    ended = looks.run(sys.executable, "-c", program)
    around = time.perf_counter() - start
    assert ended.code == 0
    assert 50 * MEGA < ended.most["own"] < 150 * MEGA
    assert looks.times[1] - looks.times[0] <= ended.seconds <= around


def test_forgotten_files_are_on_the_disk_alone(tmp_path):
    file = tmp_path / "deep" / "file"
    file.parent.mkdir()
    file.write_bytes(bytes(MEGA))
    with file.open("rb") as opened:
        try:
            os.preadv(opened.fileno(), [bytearray(4096)], 0, os.RWF_NOWAIT)
        except OSError:
            pytest.skip("the file system cannot tell what is in memory")
    assert pages_in_memory(file)

    def gone() -> bool:
        forget(tmp_path)
        return not pages_in_memory(file)

    # A page that another processor is just at work on stays that once.
    wait_for(gone, f"the pages of {file} to leave memory")
    assert file.read_bytes() == bytes(MEGA)
