"""How much memory there is."""

from __future__ import annotations

import subprocess
import sys

from vrgcn.files.memory import free_memory


def test_free_memory_is_more_than_nothing_and_less_than_any_machine_has():
    assert 1 << 20 < free_memory() < 1 << 50


def test_free_memory_knows_a_limit_that_the_process_was_set():
    program = (
        "import resource; resource.setrlimit(resource.RLIMIT_DATA, (123456789, 123456789));"
        "from vrgcn.files.memory import free_memory; print(free_memory())"
    )
    told = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert int(told.stdout) <= 123456789
