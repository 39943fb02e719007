"""Real graphs for comparing methods, each with several splits.

They are read from a folder of tables (`nodes.parquet`, `edges.parquet`, `features_csr.npz`) and of
raw files, named by VRGCN_DATA or found beside the project.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from lab.league.splits import deal_again, rotate_parts
from vrgcn.data import find_dataset, load_dataset
from vrgcn.data.store import load_graph
from vrgcn.data.tables import import_tables
from vrgcn.data.tables.spec import ImportSpec
from vrgcn.files.mistakes import InputError
from vrgcn.graph.graph import Graph
from vrgcn.graph.scaling import scale_graph, suitable_scaling
from vrgcn.graph.validation import SPLITS
from vrgcn.targets.label_split import random_split
from vrgcn.tasks import find_task
from vrgcn.tasks.metrics import LabelMetric
from vrgcn.tasks.task import Task

RATIO = (0.6, 0.2, 0.2)
NAMES = {"valid": "val"}  # of splits in the tables, and ours


@dataclass(frozen=True)
class RealGraph:
    """A graph of the league.

    make: from the folder of all graphs and the number of a split, with unscaled features
    about: which splits it has, for the tables
    metric: its score; None: the one that its task has by default
    scaling: of the features; None: as for a graph from disk
    official: columns of its official splits; () without them
    tables: whether it lies there as tables, which `vrgcn import` reads
    """

    make: Callable[[Path, int], Graph]
    about: str
    metric: str | None = None
    scaling: str | None = None
    official: tuple[str, ...] = ()
    tables: bool = False


@dataclass(frozen=True)
class Entry:
    """A graph of the league with one of its splits, as competitors get it.

    graph: with scaled features; name: in GRAPHS; asked: its metric, None for the task's own
    """

    name: str
    graph: Graph
    asked: str | None = None

    @property
    def task(self) -> Task:
        return find_task(self.graph.task)

    @property
    def metric(self) -> LabelMetric:
        return self.task.find_metric(self.asked)

    def scored(self, outputs: torch.Tensor, split: str) -> float:
        """Score of outputs (all nodes, columns) on the nodes of a split."""
        assert self.graph.labels is not None
        nodes = self.graph.split(split)
        return self.metric.compute(outputs[nodes], self.graph.labels[nodes])


def data_folder() -> Path | None:
    """Return the folder of the real graphs; None if there is none."""
    named = os.environ.get("VRGCN_DATA")
    beside = Path(__file__).resolve().parents[2].parent / "shared" / "data"
    found = [Path(place) for place in (named, beside) if place is not None]
    return next((place for place in found if (place / "tolokers").is_dir()), None)


def load(name: str, split: int, folder: Path) -> Graph:
    """Return a graph of the league with one of its splits, with unscaled features."""
    if name not in GRAPHS:
        raise InputError(f"{name!r} is none of {', '.join(GRAPHS)}")
    official = GRAPHS[name].official
    if official and split >= len(official):
        raise InputError(f"{name} has {len(official)} official splits, and none of number {split}")
    return GRAPHS[name].make(folder, split)


def entry_of(name: str, graph: Graph) -> Entry:
    """The graph with its features scaled as `vrgcn train` scales them."""
    known = GRAPHS.get(name)
    kind = None if known is None else known.scaling
    kind = kind or suitable_scaling(graph.features)
    return Entry(name, scale_graph(graph, kind)[0], known.metric if known else None)


def _of_tables(name: str, columns: tuple[str, ...] = (), metric: str | None = None) -> RealGraph:
    """A graph of two Parquet tables.

    columns: of the official splits; (): splits are drawn
    """

    def make(folder: Path, split: int) -> Graph:
        nodes = pq.read_table(folder / name / "nodes.parquet")
        edges = pq.read_table(folder / name / "edges.parquet")
        ends = torch.from_numpy(np.stack([column.to_numpy() for column in edges.columns[:2]]))
        labels = torch.from_numpy(nodes["label"].to_numpy().astype(np.int64))
        graph = Graph(ends, _features(folder / name, nodes), labels, undirected=True)
        if not columns:
            return random_split(graph, RATIO, seed=split)
        parts = [NAMES.get(part, part) for part in nodes[columns[split]].to_pylist()]
        chosen = {
            part: torch.tensor([i for i, its in enumerate(parts) if its == part]) for part in SPLITS
        }
        return graph.with_splits(chosen)

    about = f"{len(columns)} official" if columns else "drawn, 60/20/20"
    return RealGraph(make, about, metric, None, columns, tables=True)


def _features(folder: Path, nodes: pa.Table) -> torch.Tensor:
    file = folder / "features_csr.npz"
    if not file.is_file():
        names = [name for name in nodes.column_names if name.startswith("f")]
        columns = [nodes[name].to_numpy() for name in names]
        return torch.from_numpy(np.stack(columns, axis=1).astype(np.float32))
    with np.load(file) as held:
        return torch.sparse_csr_tensor(
            torch.from_numpy(held["indptr"].astype(np.int64)),
            torch.from_numpy(held["indices"].astype(np.int64)),
            torch.from_numpy(held["data"].astype(np.float32)),
            size=tuple(held["shape"]),
            check_invariants=True,
        )


def _named(name: str, again: Callable[[Graph, int], Graph], about: str) -> RealGraph:
    """A data set by name.

    again: returns another split of the same kind; number 0 is its own
    """

    def make(folder: Path, split: int) -> Graph:
        return again(load_dataset(name, data_root=folder), split)

    return RealGraph(make, about, scaling=find_dataset(name).scaling)


_DEALT = "the public one, then dealt anew in its sizes"


def _facebook100(folder: Path, split: int) -> Graph:
    """Gender on the friendships of thirteen colleges, by the import of its columns."""
    tables = folder / "facebook100"
    with tempfile.TemporaryDirectory() as home:
        spec = ImportSpec(
            tables / "edges.parquet",
            Path(home) / "graph",
            nodes=tables / "nodes.parquet",
            label=("gender",),
            split="split_random",
            drop=("split_by_school",),
        )
        import_tables(spec)
        return load_graph(spec.out)


GRAPHS: dict[str, RealGraph] = {
    "tolokers": _of_tables("tolokers", tuple(f"split{i}" for i in range(10)), "roc-auc"),
    "amazon_computers": _of_tables("amazon_computers"),
    "blogcatalog_attributed": _of_tables("blogcatalog_attributed"),
    "facebook_large": _of_tables("facebook_large"),
    "facebook100": RealGraph(_facebook100, "one, drawn 50/25/25", official=("split_random",)),
    "cora": _named("cora", deal_again, _DEALT),
    "citeseer": _named("citeseer", deal_again, _DEALT),
    "pubmed": _named("pubmed", deal_again, _DEALT),
    "nell": _named("nell-paper", deal_again, _DEALT),
    "ppi": _named("ppi-small", rotate_parts, "its own by tissue, then tissues take turns"),
}
