"""How much memory there is."""

from __future__ import annotations

import sys

import pytest

from tests.memory import set_memory
from vrgcn.files import memory as module
from vrgcn.files.memory import UNLIMITED, free_addresses, free_memory, taken_memory

GIGA = 1 << 30


def test_free_memory_is_what_the_machine_has_within_the_limits_of_the_process(monkeypatch):
    set_memory(monkeypatch, 9 * GIGA)
    assert (free_memory(), free_addresses()) == (9 * GIGA, UNLIMITED)
    set_memory(monkeypatch, 9 * GIGA, taken=GIGA, data=3 * GIGA)
    assert (free_memory(), free_addresses()) == (2 * GIGA, UNLIMITED)
    set_memory(monkeypatch, 9 * GIGA, taken=GIGA, addresses=3 * GIGA)
    assert (free_memory(), free_addresses()) == (2 * GIGA, 2 * GIGA)
    set_memory(monkeypatch, GIGA, taken=GIGA, addresses=3 * GIGA)
    assert (free_memory(), free_addresses()) == (GIGA, 2 * GIGA)
    set_memory(monkeypatch, GIGA, taken=4 * GIGA, addresses=3 * GIGA)
    assert (free_memory(), free_addresses()) == (0, 0)


def test_what_cannot_be_read_limits_nothing(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "_lines", lambda file: (tmp_path / "nothing").read_text().split())
    monkeypatch.setattr(module, "resource", None)
    assert free_memory() == free_addresses() == UNLIMITED
    assert taken_memory() == 0


@pytest.mark.skipif(sys.platform != "linux", reason="other systems tell nothing")
def test_the_real_readings_are_found():
    assert free_memory() < 1 << 50
    assert 1 << 20 < taken_memory("VmRSS") < taken_memory() < 1 << 50


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
