"""Report, in words, which columns and files an import used for what."""

from __future__ import annotations

from vrgcn.data.tables.columns import EdgeColumns, NodeColumns
from vrgcn.data.tables.reading import Table
from vrgcn.data.tables.spec import ImportSpec, asked_task
from vrgcn.files.setting_names import COLUMN, setting


def taken_from(
    node_table: Table | None,
    node: NodeColumns | None,
    edge_table: Table,
    edge: EdgeColumns,
    spec: ImportSpec,
    drawn: str,
) -> list[str]:
    """Return lines that report which columns and files were used for what.

    drawn: words for how a split by `ratio` was drawn
    """
    lines = []
    features = "the edges (degrees)"
    if spec.features_file is not None:
        features = str(spec.features_file)
    if node_table is not None and node is not None:
        if node.features:
            count = len(node.features)
            features = f"{count:,} columns" if count > 1 else f"column {node.features[0]!r}"
        label = _listed(node.label)
        task = asked_task(spec)
        label += " (numbers)" if label and task is not None and not task.has_classes else ""
        split = repr(node.split) if node.split else "none"
        if spec.ratio is not None:
            split = f"{' '.join(f'{share:g}' for share in spec.ratio)} {drawn}"
        lines.append(
            f"{node_table.name}: id {node.id!r}, label {label or 'none'}, split {split}, "
            f"features from {features}"
        )
        if node.aside:
            lines.append(f"{node_table.name}: left aside {_listed(node.aside)}")
    else:
        lines.append(f"nodes: those of the edges; features from {features}")
    weight = f", weight {edge.weight!r}" if edge.weight else ""
    direction = "directed" if spec.directed else "undirected"
    lines.append(f"{edge_table.name}: from {edge.source!r} to {edge.target!r}{weight}, {direction}")
    if edge.aside:
        lines.append(
            f"{edge_table.name}: left aside {_listed(edge.aside)}; an edge has a weight "
            f"({setting('weight', COLUMN)}) and nothing more"
        )
    for table in (node_table, edge_table):
        if table is not None:
            lines += [f"{table.name}: {note}" for note in table.notes]
    return lines


def _listed(columns: list[str]) -> str:
    return ", ".join(map(repr, columns[:5])) + (", ..." if len(columns) > 5 else "")
