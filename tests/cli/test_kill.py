"""kill -9, a few times; `make soak` does it 50 times."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_runs_that_are_killed_at_random_moments_end_in_the_same_bits() -> None:
    # In a process of its own, since it forks.
    done = subprocess.run(
        [sys.executable, "-m", "tests.soak.soak_kills", "--kills", "5", "--seed", "3"],
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line.split(maxsplit=1) for line in done.stdout.splitlines()[1:]]
    counts = {what: int(count) for count, what in lines}
    assert counts["kills"] == 5
    assert counts["runs that ended in the same bits"] >= 1
