"""kill -9 before writes that differ in kind; `make soak` kills before each write of these commands,
and at random moments."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.waiting import LONG

ROOT = Path(__file__).resolve().parents[2]


def test_commands_that_are_killed_before_a_write_end_in_the_same_bits() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.cli.kills"],
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=LONG,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
