"""The whole import: check the columns, read the nodes, read the edges, write the graph."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from vrgcn.data.store import write_array, write_meta
from vrgcn.data.tables.adjacency import Adjacency, write_adjacency
from vrgcn.data.tables.columns import (
    EdgeColumns,
    NodeColumns,
    check_dropped,
    edge_columns,
    node_columns,
)
from vrgcn.data.tables.edges import read_edges
from vrgcn.data.tables.features import (
    Features,
    copy_features,
    open_features,
    structural_features,
)
from vrgcn.data.tables.nodes import Nodes, check_split, nodes_of_edges, read_nodes
from vrgcn.data.tables.reading import Table, open_table
from vrgcn.data.tables.spec import ImportSpec
from vrgcn.data.tables.summary import ImportSummary, summarise
from vrgcn.files.writing import new_folder
from vrgcn.graph.names import Names
from vrgcn.graph.validation import SPLITS


def run_import(spec: ImportSpec, on_rows: Callable[[str, int], None]) -> ImportSummary:
    """See `import_tables`."""
    # All that can be told from the first lines is told before the long reading begins.
    edge_table = open_table(spec.edges, "--edges", spec.delimiter, not spec.headerless)
    node_table = node = None
    if spec.nodes is not None:
        node_table = open_table(spec.nodes, "--nodes", spec.delimiter, not spec.headerless_nodes)
    check_dropped([edge_table, *([node_table] if node_table is not None else [])], spec.drop)
    edge = edge_columns(edge_table, spec)
    if spec.features_file is not None:
        open_features(spec.features_file)
    if node_table is not None:
        node = node_columns(node_table, spec)
        check_split(node_table, node, spec)
    with new_folder(spec.out) as folder:
        if node_table is not None and node is not None:
            nodes = read_nodes(node_table, node, spec, folder, on_rows)
        else:
            nodes = nodes_of_edges(edge_table, edge, spec, on_rows)
        owner = str(spec.nodes or spec.features_file)
        pairs = read_edges(edge_table, edge, nodes.ids, owner, folder, on_rows)
        adjacency = write_adjacency(pairs, folder, spec.directed)
        features = _features(nodes, adjacency, spec, folder)
        _write_labels(nodes, folder)
        classes = nodes.labels.classes if nodes.labels is not None else None
        names = Names(nodes.ids.natural(), classes, features.names)
        task = nodes.labels.task if nodes.labels is not None else "classes"
        write_meta(folder, features.width, len(classes or []), names, task)
        drawn = nodes.labels.drawn if nodes.labels is not None else ""
        columns = _told(node_table, node, edge_table, edge, spec, drawn)
        return summarise(spec.out, nodes, pairs, adjacency, features, columns, spec.task)


def _features(nodes: Nodes, adjacency: Adjacency, spec: ImportSpec, folder: Path) -> Features:
    if nodes.features is not None:
        return nodes.features
    if spec.features_file is not None:
        return copy_features(spec.features_file, len(nodes.ids), folder, spec.fill)
    return structural_features(adjacency, folder)


def _write_labels(nodes: Nodes, folder: Path) -> None:
    if nodes.labels is not None:
        nodes.labels.write(folder)
    for code, name in enumerate(SPLITS):
        members = nodes.split == code if nodes.split is not None else np.empty(0, bool)
        write_array(folder, name, np.flatnonzero(members).astype(np.int64))


def _told(
    node_table: Table | None,
    node: NodeColumns | None,
    edge_table: Table,
    edge: EdgeColumns,
    spec: ImportSpec,
    drawn: str,
) -> list[str]:
    """What was taken from where; drawn: how a split in a ratio was."""
    lines = []
    features = "the edges (degrees)"
    if spec.features_file is not None:
        features = str(spec.features_file)
    if node_table is not None and node is not None:
        if node.features:
            count = len(node.features)
            features = f"{count:,} columns" if count > 1 else f"column {node.features[0]!r}"
        label = ", ".join(map(repr, node.label[:5])) + (", ..." if len(node.label) > 5 else "")
        label += " (numbers)" if spec.task == "regression" else ""
        split = repr(node.split) if node.split else "none"
        if spec.ratio is not None:
            split = f"{' '.join(f'{share:g}' for share in spec.ratio)} {drawn}"
        lines.append(
            f"{node_table.name}: id {node.id!r}, label {label or 'none'}, split {split}, "
            f"features from {features}"
        )
        if node.aside:
            aside = ", ".join(map(repr, node.aside[:5])) + (", ..." if len(node.aside) > 5 else "")
            lines.append(f"{node_table.name}: left aside {aside}")
    else:
        lines.append(f"nodes: those of the edges; features from {features}")
    weight = f", weight {edge.weight!r}" if edge.weight else ""
    direction = "directed" if spec.directed else "undirected"
    lines.append(f"{edge_table.name}: from {edge.source!r} to {edge.target!r}{weight}, {direction}")
    for table in (node_table, edge_table):
        if table is not None:
            lines += [f"{table.name}: {note}" for note in table.notes]
    return lines
