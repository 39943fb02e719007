"""A command under a hard limit of memory; tests/soak/soak_measuring.py has real ones."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from lab.harness import memory_limit as module
from lab.harness.memory_limit import DataLimit, GroupLimit, memory_limit, run_limited

MEGA = 1 << 20


def test_a_group_that_does_not_limit_memory_is_not_taken_and_removed_again(tmp_path):
    (tmp_path / "cgroup.procs").touch()
    with memory_limit(100 * MEGA, groups=tmp_path) as limit:
        assert isinstance(limit, DataLimit)
    assert [file.name for file in tmp_path.iterdir()] == ["cgroup.procs"]


def test_where_no_group_can_be_made_the_limit_is_of_own_memory_and_says_so(tmp_path):
    with memory_limit(100 * MEGA, groups=tmp_path) as limit:
        assert isinstance(limit, DataLimit)
        assert "NOT counted" in limit.counts
        asks = [*limit.prefix, "sh", "-c", "ulimit -d"]
        told = subprocess.run(asks, capture_output=True, text=True, check=True)
    assert told.stdout == f"{100 * 1024}\n"


V1 = {
    "memory.limit_in_bytes": "",
    "memory.max_usage_in_bytes": "90\n",
    "memory.failcnt": "7\n",
    "memory.stat": "cache 1\ntotal_rss 60\ntotal_cache 30\n",
}
V2 = {
    "memory.max": "max\n",
    "memory.peak": "90\n",
    "memory.events": "low 0\nmax 7\noom 0\n",
    "memory.stat": "anon 60\nfile 30\n",
}


@pytest.mark.parametrize(("version", "files"), [("memory", V1), ("", V2)])
def test_a_group_has_the_limit_tells_its_numbers_and_is_gone_afterwards(
    version, files, tmp_path, monkeypatch
):
    parent = tmp_path / version
    parent.mkdir(exist_ok=True)
    (parent / "cgroup.procs").touch()
    made, removed = Path.mkdir, []

    def mkdir(folder, *options):  # as the system does: a new group has its files
        made(folder, *options)
        for name, text in files.items():
            (folder / name).write_text(text)

    def rmdir(folder):
        removed.append(folder)

    monkeypatch.setattr(Path, "mkdir", mkdir)
    monkeypatch.setattr(Path, "rmdir", rmdir)
    with memory_limit(16 * MEGA, groups=tmp_path) as limit:
        assert isinstance(limit, GroupLimit)
        assert limit.folder.parent == parent
        assert int((limit.folder / next(iter(files))).read_text()) == 16 * MEGA
        assert limit.numbers() == {"peak": 90, "limit_met": 7, "own": 60, "cached": 30}
        asks = [*limit.prefix, "sh", "-c", "echo $$"]
        done = subprocess.run(asks, capture_output=True, text=True, check=True)
        assert (limit.folder / "cgroup.procs").read_text() == done.stdout
        assert not removed
    assert removed == [limit.folder]


def test_the_end_of_a_command_has_its_code_and_the_most_of_each_number(monkeypatch):
    looks = iter([{"cached": 3}, {"cached": 5}, {"cached": 4}])
    limit = SimpleNamespace(prefix=["given"], numbers=lambda: next(looks))
    ends = iter([subprocess.TimeoutExpired("", 0.5), subprocess.TimeoutExpired("", 0.5), 9])
    own = iter([20, 10, 30])

    class Process:
        pid = 17

        def __init__(self, command: list[str]) -> None:
            assert command == ["given", "program", "word"]

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def wait(self, seconds: float) -> int:
            end = next(ends)
            if isinstance(end, int):
                return end
            raise end

    monkeypatch.setattr(module.subprocess, "Popen", Process)
    monkeypatch.setattr(module, "taken_memory", lambda kind, process: next(own))
    ended = run_limited(["program", "word"], limit)
    assert (ended.code, ended.most) == (9, {"own": 30, "cached": 5})
