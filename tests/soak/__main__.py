"""Long tests, for `make soak`, within 20 minutes in all on two cores.

    python -m tests.soak                     everything
    python -m tests.soak kills full_disk     some parts

A part is a module soak_PART.py of this folder with `main()`, run in a process of its own. It prints
what it counted, and exits with 0 if all it tried held. Each can be run in pieces too: see its
--help for seeds and counts.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

MINUTES = 20.0
# One group after the other, the parts of a group at the same time: fuzz has two processes itself.
GROUPS = (
    ("fuzz",),
    ("kills", "full_disk", "leaks"),
    ("memory", "measuring", "distributed", "marked", "tables"),
    ("journal",),
    ("service",),
)


def main() -> int:
    parts = [part for group in GROUPS for part in group]
    there = {path.stem for path in Path(__file__).parent.glob("soak_*.py")}
    assert there == {f"soak_{part}" for part in parts}, there
    parser = argparse.ArgumentParser()
    parser.add_argument("parts", nargs="*", choices=[[], *parts], metavar="PART")
    asked = parser.parse_args().parts or parts
    failed, end = [], time.monotonic() + 60 * MINUTES
    for group in GROUPS:
        failed += _run([part for part in group if part in asked], end)
    print(f"soak: {'failed: ' + ', '.join(failed) if failed else 'everything held'}")
    return bool(failed)


def _run(parts: list[str], end: float) -> list[str]:
    """Run some parts at the same time; gives those that failed."""
    start, failed = time.monotonic(), []
    running = {
        part: subprocess.Popen(
            [sys.executable, "-m", f"tests.soak.soak_{part}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for part in parts
    }
    for part, process in running.items():
        try:
            output = process.communicate(timeout=max(1.0, end - time.monotonic()))[0]
            said = f"failed with code {process.returncode}" if process.returncode else "held"
        except subprocess.TimeoutExpired:
            process.kill()
            output, said = process.communicate()[0], f"failed: {MINUTES:g} minutes are over"
        if said != "held":
            failed.append(part)
        print(f"== {part}\n{output}== {part} {said}, {time.monotonic() - start:.0f} s", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
