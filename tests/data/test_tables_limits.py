"""Tables under a limit of memory: Arrow takes little, or reading does not begin."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.memory import set_memory
from tests.messages import refused
from vrgcn.data.tables.limits import ROOM, respect_limit

TAKEN = 1 << 30
SETTERS = ("set_cpu_count", "set_io_thread_count", "set_memory_pool")


@pytest.fixture
def given(monkeypatch) -> dict[str, object]:
    """What Arrow was given; its own settings stay."""
    found: dict[str, object] = {}
    for name in SETTERS:
        monkeypatch.setattr(pa, name, lambda value, name=name: found.update({name: value}))
    return found


def test_without_a_limit_nothing_changes_however_little_is_free(monkeypatch, given) -> None:
    set_memory(monkeypatch, free=1000, taken=TAKEN)
    respect_limit()
    assert not given


@pytest.mark.parametrize("missing", [0, 1024])
def test_with_a_limit_arrow_has_one_thread_and_reading_needs_room(
    monkeypatch, given, missing: int
) -> None:
    set_memory(monkeypatch, free=1 << 40, taken=TAKEN, addresses=TAKEN + ROOM - missing)
    if missing:
        with refused(MemoryError):
            respect_limit()
    else:
        respect_limit()
    assert (given["set_cpu_count"], given["set_io_thread_count"]) == (1, 1)
    assert given["set_memory_pool"].backend_name == "system"
