"""Graphs by name.

A new dataset is a function from a seed to a Graph, imported when it is asked for, and one line in
`DATASETS`. Nothing here imports PyTorch: `vrgcn --help` lists the names without that wait.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from vrgcn.graph import Graph


class Dataset(NamedTuple):
    """One line of the table.

    make: seed -> Graph; a dataset that is not random ignores the seed.
    description: one line for people.
    cached: keep the graph on disk, because making it takes long.
    version: part of the cached graph's name; to be raised whenever `make` gives another graph.
    """

    make: Callable[[int], Graph]
    description: str
    cached: bool = False
    version: int = 1


def _communities(seed: int) -> Graph:
    from vrgcn.data.synthetic import communities

    return communities(seed)


def _reddit_like(seed: int) -> Graph:
    from vrgcn.data.synthetic import reddit_like

    return reddit_like(seed)


DATASETS: dict[str, Dataset] = {
    "communities": Dataset(
        _communities, "synthetic: 20,000 nodes, average degree 50, 64 features, 16 classes"
    ),
    "reddit-like": Dataset(
        _reddit_like,
        "synthetic, the size of Reddit: 232,965 nodes, 23M edges, 602 features, 41 classes",
        cached=True,
    ),
}


def load_dataset(name: str, seed: int = 0, cache: str | Path | None = None) -> Graph:
    """The graph called `name` in `DATASETS`.

    seed: of the generator.
    cache: the folder for graphs that take long to make; by default `cache_folder()`.
    """
    if name not in DATASETS:
        raise ValueError(f"there is no dataset {name!r}; there are {', '.join(DATASETS)}")
    dataset = DATASETS[name]
    if not dataset.cached:
        return dataset.make(seed)
    from vrgcn.data.store import load_graph, save_graph

    folder = Path(cache) if cache is not None else cache_folder()
    path = folder / f"{name}-seed{seed}-v{dataset.version}"
    if not path.exists():
        graph = dataset.make(seed)
        with suppress(FileExistsError):  # another process may have made it meanwhile
            save_graph(graph, path)
    return load_graph(path)


def cache_folder() -> Path:
    """`$VRGCN_CACHE`, or else `vrgcn` in `$XDG_CACHE_HOME`, which is `~/.cache` if not set."""
    chosen = os.environ.get("VRGCN_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "vrgcn"
