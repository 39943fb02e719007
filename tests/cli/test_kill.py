"""kill -9 before the writes of commands, each in turn; `make soak` kills at random moments."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import LONG

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("kind", "least"),
    [("train", 25), ("seeds", 15), ("tune", 10), ("import", 10), ("predict", 6)],
)
def test_commands_that_are_killed_before_any_write_end_in_the_same_bits(
    kind: str, least: int
) -> None:
    """least: kills; a number far above what is there would say that writes are not seen"""
    done = subprocess.run(
        [sys.executable, "-m", "tests.cli.kills", kind],
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=LONG,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout) >= least
