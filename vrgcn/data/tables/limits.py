"""Reading tables under a limit of memory (`ulimit -v`).

Arrow ends the process, or waits for ever, where its reading threads cannot allocate. So under a
limit it gets few threads and the allocator that reserves least, and too little room is refused
before reading begins.
"""

from __future__ import annotations

import pyarrow as pa

from vrgcn.files.memory import UNLIMITED, free_addresses
from vrgcn.files.wording import bytes_text

ROOM = 400 << 20  # bytes that reading takes at most besides its results: blocks in transit, threads


def respect_limit() -> None:
    """Make Arrow use little memory if the process has a memory limit; refuse to start with too
    little."""
    room = free_addresses()
    if room == UNLIMITED:
        return
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    pa.set_memory_pool(pa.system_memory_pool())
    if room < ROOM:
        raise MemoryError(
            f"the process may allocate {bytes_text(room)} more (ulimit -v), and reading tables "
            f"takes {bytes_text(ROOM)}: raise the limit"
        )
