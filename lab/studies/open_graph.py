"""Time to open a graph on disk with its checks, and to verify it.

    python -m lab.studies.open_graph              reddit-like, from the cache
    python -m lab.studies.open_graph FOLDER       any graph that `vrgcn import` wrote

Files are read from the page cache: the first round, from the disk, is not counted.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

from vrgcn.data import cache_folder, load_dataset
from vrgcn.data.store import load_graph, verify_graph

ROUNDS = 5


def seconds(work: Callable[[], object]) -> float:
    """Return the best of some rounds after the first."""
    times = []
    for _ in range(ROUNDS + 1):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times[1:])


def main() -> None:
    if len(sys.argv) > 1:
        folder = Path(sys.argv[1])
    else:
        load_dataset("reddit-like")
        folder = max(cache_folder().glob("reddit-like-seed0-*"))
    size = sum(file.stat().st_size for file in folder.iterdir())
    print(f"{folder}: {load_graph(folder)}, {size / 1e9:.2f} GB")
    print(f"opened, every place checked  {seconds(lambda: load_graph(folder)):.3f} s")
    print(f"verified, every byte read    {seconds(lambda: verify_graph(folder)):.3f} s")


if __name__ == "__main__":
    main()
