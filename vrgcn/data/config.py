"""Settings of the graph. Imports no torch: the command line reads them before loading anything."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from vrgcn.files.settings import Component, declared


@dataclass(frozen=True)
class GraphConfig(Component):
    """Where the graph comes from."""

    """Group graph: which graph to use, and how to read it."""
    dataset: str | None = None
    """A named data set; `vrgcn datasets` lists them."""
    graph: Path | None = declared(None, resume="always")
    """A graph from disk: a folder that `vrgcn import` wrote."""
    data_root: Path | None = declared(None, resume="always")
    """Folder of the raw files of named data sets. None: $VRGCN_DATA, or else data."""
    verify: bool = declared(True, resume="always")
    """Read all files of a graph on disk before training and compare their checksums, so that
    training never uses damaged data: one or two seconds per gigabyte."""
