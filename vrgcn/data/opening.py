"""The graph that a command works on, by name or from disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple

from vrgcn.data import find_dataset, load_dataset, root_folder
from vrgcn.data.sources import find_source
from vrgcn.data.store import load_graph, verify_graph
from vrgcn.data.store_format import content_checksum, opened_store, read_meta
from vrgcn.files.folder import OpenFolder
from vrgcn.graph.graph import Graph
from vrgcn.graph.scaling import suitable_scaling


class Opened(NamedTuple):
    """scaling: what suits the features, a kind of `vrgcn.graph.scaling`
    note: what people must know about the graph as it was found; None if nothing
    checksum: of a graph on disk, by what it is known again wherever it lies, but for its splits
    """

    graph: Graph
    scaling: str
    note: str | None
    checksum: str | None = None


def open_graph(
    dataset: str | None,
    graph: Path | OpenFolder | None = None,
    data_root: Path | None = None,
    *,
    verify: bool = False,
    memory: Literal["ram", "disk"] = "ram",
    on_fill: Callable[[str, float], None] | None = None,
) -> Opened:
    """A graph by name or from disk.

    dataset: a name of `vrgcn.data`
    graph: a folder written by `save_graph`, in place of a name; or that folder, opened already
    data_root: where raw files of named data sets lie or go
    verify: read all of a graph on disk first, and refuse it if a byte is not what was written
    memory: "disk" for a graph on disk that may be larger than memory: see `load_graph`
    on_fill: of memory="disk", told what is computed of the graph, and the share of it that is done

    A named data set brings its own scaling. Nothing is known of a graph from disk: dense columns
    are standardised, and rows of sparse columns, which standardising would fill, sum to one.
    """
    opened = _open(dataset, graph, data_root, verify, memory)
    if on_fill is not None and opened.graph.derived is not None:
        derived = opened.graph.derived.telling(on_fill)
        opened = opened._replace(graph=opened.graph.replace(derived=derived))
    return opened


def _open(
    dataset: str | None,
    graph: Path | OpenFolder | None,
    data_root: Path | None,
    verify: bool,
    memory: Literal["ram", "disk"],
) -> Opened:
    dataset, path = find_source(dataset, graph.path if isinstance(graph, OpenFolder) else graph)
    if path is not None:
        with opened_store(graph if isinstance(graph, OpenFolder) else path) as folder:
            if verify:
                verify_graph(folder)
            checksum = content_checksum(read_meta(folder))
            opened = load_graph(folder, memory=memory)
        kind = suitable_scaling(opened.features, dated=opened.dated is not None)
        return Opened(opened, kind, None, checksum)
    assert dataset is not None
    opened = load_dataset(dataset, data_root=data_root, verify=verify)
    return Opened(opened, find_dataset(dataset).scaling, _note(dataset, data_root))


def _note(dataset: str, data_root: Path | None) -> str | None:
    raw = find_dataset(dataset).raw
    return None if raw is None else raw.note(raw.folder(root_folder(data_root)))
