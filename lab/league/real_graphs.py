"""Real graphs for comparing methods, each with several splits.

They are read from a folder of tables (`nodes.parquet`, `edges.parquet`, `features_csr.npz`) and of
raw files, named by VRGCN_DATA or found beside the project.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import torch

from vrgcn.data import load_dataset
from vrgcn.data.splitting import random_split
from vrgcn.graph.graph import Graph

RATIO = (0.6, 0.2, 0.2)


def data_folder() -> Path | None:
    """Return the folder of the real graphs; None if there is none."""
    named = os.environ.get("VRGCN_DATA")
    beside = Path(__file__).resolve().parents[2].parent / "shared" / "data"
    found = [Path(place) for place in (named, beside) if place is not None]
    return next((place for place in found if (place / "tolokers").is_dir()), None)


def load(name: str, split: int, folder: Path) -> Graph:
    """Return a graph of the league with one of its splits, with unscaled features."""
    if name not in GRAPHS:
        raise ValueError(f"{name!r} is none of {', '.join(GRAPHS)}")
    return GRAPHS[name](folder, split)


def _of_tables(name: str, columns: tuple[str, ...] | None = None) -> Callable[[Path, int], Graph]:
    """A graph of two Parquet tables.

    columns: of the official splits; None: splits are drawn
    """

    def make(folder: Path, split: int) -> Graph:
        nodes = pq.read_table(folder / name / "nodes.parquet")
        edges = pq.read_table(folder / name / "edges.parquet")
        ends = torch.from_numpy(np.stack([column.to_numpy() for column in edges.columns[:2]]))
        labels = torch.from_numpy(nodes["label"].to_numpy().astype(np.int64))
        graph = Graph(ends, _features(folder / name, nodes), labels, undirected=True)
        if columns is None:
            return random_split(graph, RATIO, seed=split)
        names = {"valid": "val"}
        parts = [names.get(part, part) for part in nodes[columns[split]].to_pylist()]
        chosen = {
            part: torch.tensor([i for i, its in enumerate(parts) if its == part])
            for part in ("train", "val", "test")
        }
        return graph.with_splits(chosen)

    return make


def _features(folder: Path, nodes: object) -> torch.Tensor:
    file = folder / "features_csr.npz"
    if not file.is_file():
        names = [name for name in nodes.column_names if name.startswith("f")]  # type: ignore[attr-defined]
        columns = [nodes[name].to_numpy() for name in names]  # type: ignore[index]
        return torch.from_numpy(np.stack(columns, axis=1).astype(np.float32))
    with np.load(file) as held:
        return torch.sparse_csr_tensor(
            torch.from_numpy(held["indptr"].astype(np.int64)),
            torch.from_numpy(held["indices"].astype(np.int64)),
            torch.from_numpy(held["data"].astype(np.float32)),
            size=tuple(held["shape"]),
            check_invariants=True,
        )


def _named(name: str) -> Callable[[Path, int], Graph]:
    """A data set by name; its own split first, then splits that are drawn."""

    def make(folder: Path, split: int) -> Graph:
        graph = load_dataset(name, data_root=folder)
        return graph if split == 0 else random_split(graph, RATIO, seed=split)

    return make


GRAPHS: dict[str, Callable[[Path, int], Graph]] = {
    "tolokers": _of_tables("tolokers", tuple(f"split{i}" for i in range(10))),
    "amazon_computers": _of_tables("amazon_computers"),
    "blogcatalog_attributed": _of_tables("blogcatalog_attributed"),
    "facebook_large": _of_tables("facebook_large"),
    "cora": _named("cora"),
    "citeseer": _named("citeseer"),
    "pubmed": _named("pubmed"),
    "nell": _named("nell-paper"),
    "ppi": _named("ppi-small"),
}
METRICS = {"tolokers": "roc-auc"}
