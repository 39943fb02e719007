"""The graph that a command works on, by name or from disk."""

from __future__ import annotations

from pathlib import Path

from vrgcn.data import DATASETS, find_dataset, load_dataset
from vrgcn.data import data_root as default_root
from vrgcn.data.store import load_graph
from vrgcn.graph.graph import Graph
from vrgcn.graph.sparse import is_sparse


def open_graph(
    dataset: str | None, graph: Path | None, data_root: Path | None = None
) -> tuple[Graph, str]:
    """A graph and the scaling that suits its features: a kind of `vrgcn.graph.scaling`.

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
        return opened, "row" if is_sparse(opened.features) else "standard"
    assert dataset is not None
    if dataset not in DATASETS and Path(dataset).is_dir():
        raise ValueError(
            f"{dataset} is a folder, not the name of a data set: say --graph {dataset}"
        )
    return load_dataset(dataset, root=data_root), find_dataset(dataset).scaling


def print_graph_note(dataset: str | None, data_root: Path | None = None) -> None:
    """Print what people must know about a named data set as it was found, if anything."""
    raw = find_dataset(dataset).raw if dataset is not None else None
    note = None if raw is None else raw.note(raw.folder(default_root(data_root)))
    if note is not None:
        print(f"note: {note}")
