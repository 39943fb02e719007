"""The graph that a command works on, by name or from disk."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from vrgcn.data import DATASETS, find_dataset, load_dataset, root_folder
from vrgcn.data.store import load_graph
from vrgcn.graph.graph import Graph
from vrgcn.graph.sparse import is_sparse


class Opened(NamedTuple):
    """scaling: what suits the features, a kind of `vrgcn.graph.scaling`
    note: what people must know about a named data set as it was found; None if nothing
    """

    graph: Graph
    scaling: str
    note: str | None


def open_graph(
    dataset: str | None, graph: Path | None = None, data_root: Path | None = None
) -> Opened:
    """A graph by name or from disk.

    dataset: a name of `vrgcn.data`
    graph: a folder written by `save_graph`, in place of a name
    data_root: where raw files of named data sets lie or go

    A named data set brings its own scaling. Nothing is known of a graph from disk: dense columns
    are standardised, and rows of sparse features, which standardising would fill, sum to one.
    """
    if (dataset is None) == (graph is None):
        raise ValueError("give a graph: either --dataset NAME or --graph PATH")
    if graph is not None:
        opened = load_graph(graph)
        return Opened(opened, "row" if is_sparse(opened.features) else "standard", None)
    assert dataset is not None
    if dataset not in DATASETS and Path(dataset).is_dir():
        raise ValueError(
            f"{dataset} is a folder, not the name of a data set: say --graph {dataset}"
        )
    opened = load_dataset(dataset, data_root=data_root)
    return Opened(opened, find_dataset(dataset).scaling, _note(dataset, data_root))


def _note(dataset: str, data_root: Path | None) -> str | None:
    raw = find_dataset(dataset).raw
    return None if raw is None else raw.note(raw.folder(root_folder(data_root)))
