"""How much memory there is."""

from __future__ import annotations

import subprocess
import sys

import pytest

from vrgcn.files.memory import free_memory


def test_free_memory_is_more_than_nothing_and_less_than_any_machine_has():
    assert 1 << 20 < free_memory() < 1 << 50


@pytest.mark.parametrize("kind", ["DATA", "AS"])
def test_free_memory_knows_a_limit_that_the_process_was_set(kind: str):
    limit = 500_000_000
    program = (
        f"import resource; resource.setrlimit(resource.RLIMIT_{kind}, ({limit}, {limit}));"
        "from vrgcn.files.memory import *; print(free_memory(), free_addresses())"
    )
    told = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    memory, addresses = map(int, told.stdout.split())
    assert 0 < memory <= limit
    assert addresses == (memory if kind == "AS" else 2**63 - 1)
