"""Long tests, for `make soak`: every soak_*.py of this folder, one after the other, within 20
minutes in all.

Each is a module with `main()`, run in a process of its own. It prints what it counted, and exits
with 0 if all it tried held.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

MINUTES = 20.0


def main() -> int:
    folder, failed = Path(__file__).parent, []
    end = time.monotonic() + 60 * MINUTES
    for module in sorted(path.stem for path in folder.glob("soak_*.py")):
        start = time.monotonic()
        print(f"== {module}", flush=True)
        try:
            command = [sys.executable, "-m", f"tests.soak.{module}"]
            done = subprocess.run(command, timeout=max(1.0, end - start), check=False)
            said = f"failed with code {done.returncode}" if done.returncode else "held"
        except subprocess.TimeoutExpired:
            said = f"failed: the {MINUTES:g} minutes of all are over"
        if said != "held":
            failed.append(module)
        print(f"== {module} {said}, {time.monotonic() - start:.0f} s", flush=True)
    print(f"soak: {'failed: ' + ', '.join(failed) if failed else 'everything held'}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
