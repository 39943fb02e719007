"""kill -9, a few times; `make soak` does it 104 times."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_runs_that_are_killed_at_random_moments_end_in_the_same_bits() -> None:
    kills = {"single": 5, "seeds": 1, "search": 1, "import": 1, "predict": 1}
    flags = [part for kind, count in kills.items() for part in (f"--{kind}", str(count))]
    # In a process of its own, since it forks.
    done = subprocess.run(
        [sys.executable, "-m", "tests.soak.soak_kills", *flags, "--seed", "3"],
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
    for kind, count in kills.items():
        assert counts[f"{kind}: kills"] == count
    for kind in ("single", "seeds", "search"):
        assert counts[f"{kind}: ended in the same bits"] >= 1
