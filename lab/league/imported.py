"""Graphs of the league as a user gets them: by `vrgcn import` from their two tables."""

from __future__ import annotations

import tempfile
from pathlib import Path

from lab.league.real_graphs import GRAPHS, RATIO
from vrgcn.data.store import load_graph
from vrgcn.data.tables import import_tables
from vrgcn.data.tables.spec import ImportSpec
from vrgcn.graph.graph import Graph


def spec_of(name: str, split: int, folder: Path, out: Path) -> ImportSpec:
    """Return the settings of the import: which columns are features, the label and the split."""
    official = GRAPHS[name].official if name in GRAPHS else ()
    return ImportSpec(
        folder / name / "edges.parquet",
        out,
        nodes=folder / name / "nodes.parquet",
        label=("label",),
        features=("f*",),
        split=official[split] if official else None,
        ratio=None if official else RATIO,
        split_seed=0 if official else split,
    )


def load_imported(name: str, split: int, folder: Path) -> Graph:
    """Return a graph of the league with one of its splits, imported from its tables; unscaled."""
    with tempfile.TemporaryDirectory() as home:
        out = Path(home) / "graph"
        import_tables(spec_of(name, split, folder, out))
        return load_graph(out)
