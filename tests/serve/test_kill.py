"""kill -9 before writes of a service that differ in kind; `make soak` kills before each."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.waiting import LONG

ROOT = Path(__file__).resolve().parents[2]


def test_what_was_acknowledged_is_there_once_wherever_the_service_is_killed(papers: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.serve.kills", str(papers)],
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=LONG,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout) >= 15
