"""Graphs as training sees them."""

from __future__ import annotations

from pathlib import Path

from vrgcn.data.opening import open_graph
from vrgcn.graph.graph import Graph
from vrgcn.graph.scaling import scale_graph


def scaled_graph(dataset: str, data_root: Path | None = None) -> Graph:
    """Return the graph of a name, its features scaled as the data set says."""
    opened = open_graph(dataset, data_root=data_root)
    return scale_graph(opened.graph, opened.scaling)[0]
