"""`vrgcn`, whose rank 1 is killed as it is about to write its second checkpoint: the first time.

DIES_ONCE names a file, which says that it has happened.
"""

from __future__ import annotations

import os
import signal
from itertools import count
from pathlib import Path

from vrgcn.cli import main
from vrgcn.distributed.checkpoints import PartCheckpoints


def dies_once() -> None:
    """Put the death of this process into the way of its second checkpoint."""
    died, calls, write = Path(os.environ["DIES_ONCE"]), count(1), PartCheckpoints.write

    def die_or_write(self: PartCheckpoints) -> bool:
        # The first is whole by then: no process begins an epoch before the others have theirs.
        if next(calls) == 2 and os.environ["RANK"] == "1" and not died.exists():
            died.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return write(self)

    PartCheckpoints.write = die_or_write  # type: ignore[method-assign]


if __name__ == "__main__":
    dies_once()
    main()
