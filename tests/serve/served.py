"""A service in a process of its own, as people start it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.waiting import LONG


@contextmanager
def served(run: Path, *flags: str, logged: int = 0) -> Iterator[str]:
    """`vrgcn serve RUN FLAGS` at a free port: its address. It is stopped by SIGTERM, and must end
    in order.

    logged: characters that its log may have
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "vrgcn", "serve", str(run), "--port", "0", *flags],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        found = re.search(r"http://\S+", line)
        assert found, line + process.communicate(timeout=LONG)[1]
        yield found[0]
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=LONG)
        assert process.returncode == 0, errors
        assert len(errors) <= logged, errors[:3000]
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()
