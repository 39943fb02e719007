"""How much memory there is."""

from __future__ import annotations

import subprocess
import sys

import pytest

from lab.harness.memory_limit import GroupLimit, memory_limit
from vrgcn.files import memory as module
from vrgcn.files.memory import free_memory


def test_free_memory_is_more_than_nothing_and_less_than_any_machine_has():
    assert 1 << 20 < free_memory() < 1 << 50


LIMITED = """
import resource, sys
from vrgcn.files import memory
kind, limit = getattr(resource, sys.argv[1]), int(sys.argv[2])
resource.setrlimit(kind, (limit, limit))
lines, plenty = memory._lines, ["MemAvailable: 9000000000 kB"]  # whatever this machine has free
memory._lines = lambda name: plenty if name == "/proc/meminfo" else lines(name)
memory._GROUPS = ()
print(memory.free_memory(), memory.free_addresses())
"""


@pytest.mark.parametrize("kind", ["DATA", "AS"])
def test_free_memory_knows_a_limit_that_the_process_was_set(kind: str):
    limit = 500_000_000
    command = [sys.executable, "-c", LIMITED, f"RLIMIT_{kind}", str(limit)]
    told = subprocess.run(command, check=True, capture_output=True, text=True)
    memory, addresses = map(int, told.stdout.split())
    assert 0 < memory <= limit
    assert addresses == (memory if kind == "AS" else 2**63 - 1)


def test_free_memory_knows_the_limit_of_the_control_group_that_the_process_is_in():
    program = "from vrgcn.files.memory import free_memory; print(free_memory())"
    with memory_limit(300 << 20) as limit:
        if not isinstance(limit, GroupLimit):
            pytest.skip("no control group can be made here")
        command = [*limit.prefix, sys.executable, "-c", program]
        told = subprocess.run(command, check=True, capture_output=True, text=True)
    assert 0 < int(told.stdout) < 300 << 20


@pytest.mark.parametrize(
    ("kind", "file", "line"),
    [("", "memory.max", "0::/jobs/17"), ("memory", "memory.limit_in_bytes", "4:memory:/jobs/17")],
)
def test_the_smallest_limit_of_a_group_and_those_around_it_counts(
    kind, file, line, tmp_path, monkeypatch
):
    (tmp_path / "jobs" / "17").mkdir(parents=True)
    (tmp_path / file).write_text("max\n")
    (tmp_path / "jobs" / file).write_text("2000000\n")
    (tmp_path / "jobs" / "17" / file).write_text("3000000\n")
    (tmp_path / "cgroup").write_text(f"9:cpu:/elsewhere\n{line}\n")
    monkeypatch.setattr(module, "_GROUPS", ((kind, tmp_path, file),))
    read = module._lines
    monkeypatch.setattr(
        module,
        "_lines",
        lambda name: read(str(tmp_path / "cgroup") if name == "/proc/self/cgroup" else name),
    )
    assert sorted(module._group_limits()) == [2000000, 3000000]
