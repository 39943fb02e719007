"""The whole import: check the columns, read the nodes, read the edges, write the graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vrgcn.data.store import write_array, write_meta
from vrgcn.data.tables.adjacency import Adjacency, write_adjacency
from vrgcn.data.tables.columns import (
    EdgeColumns,
    NodeColumns,
    check_asked_for,
    check_dropped,
    edge_columns,
    node_columns,
)
from vrgcn.data.tables.edges import read_edges
from vrgcn.data.tables.encoders.encoder import Encoder
from vrgcn.data.tables.features import (
    FeatureColumns,
    Features,
    copy_features,
    open_features,
    structural_features,
)
from vrgcn.data.tables.ids import look_alikes
from vrgcn.data.tables.limits import respect_limit
from vrgcn.data.tables.nodes import (
    Nodes,
    add_unknown,
    check_split,
    nodes_of_edges,
    read_nodes,
)
from vrgcn.data.tables.overrides import parse_fills
from vrgcn.data.tables.problems import Collected, Problems
from vrgcn.data.tables.proposal import propose, rows_of
from vrgcn.data.tables.reading import Table, check_headerless, open_table
from vrgcn.data.tables.recipe import Recipe, read_recipe
from vrgcn.data.tables.spec import ImportSpec
from vrgcn.data.tables.summary import ImportSummary, summarise
from vrgcn.data.tables.telling import taken_from
from vrgcn.files.writing import new_folder
from vrgcn.graph.names import Names
from vrgcn.graph.validation import SPLITS
from vrgcn.tasks import DEFAULT, find_task

Watch = Callable[[str, int], None]
Plan = Callable[[str, list[tuple[str, str, str]]], None]
Opener = Callable[[Path, str, str | None, bool], Table]  # called like `open_table`


@dataclass(frozen=True)
class Source:
    """The opened tables, and the role of each of their columns.

    node_table, node: None if the nodes are those that the edges name
    encoders: encoders of the feature columns
    marked: a feature marks the nodes that the table of nodes lacks
    recipe: how the graph of --like was made; None without --like
    """

    spec: ImportSpec
    edge_table: Table
    edge: EdgeColumns
    node_table: Table | None
    node: NodeColumns | None
    encoders: Sequence[Encoder]
    marked: bool
    recipe: Recipe | None


def run_import(
    spec: ImportSpec, on_rows: Watch, on_plan: Plan, opened: Opener = open_table
) -> ImportSummary:
    """Run an import; see `import_tables`.

    opened: opens the tables of the spec; replaced where they are not files
    """
    respect_limit()
    # Report every error that the first lines show before the long reading begins.
    source = _opened(spec, on_plan, opened)
    spec = source.spec
    with new_folder(spec.out) as folder:
        found = Collected()
        nodes = _nodes(source, folder, on_rows, found)
        owner = str(spec.nodes or spec.features_file)
        pairs, problems = read_edges(
            source.edge_table, source.edge, nodes.ids, owner, spec, folder, on_rows
        )
        found.add(problems)
        found.raise_if_any()
        adjacency = write_adjacency(pairs, folder, spec.directed)
        features = _features(source, nodes, adjacency, folder)
        _write_labels(nodes, folder)
        classes, task = _classes(source, nodes)
        names = Names(nodes.ids.natural(), classes, features.names)
        recipe = source.recipe or Recipe.of(
            *(spec, source.node, source.edge, source.encoders, source.marked),
            *(features.mean, classes, task),
        )
        recipe.write(folder)
        write_meta(folder, features.width, len(classes or []), names, task)
        notes = [*_notes(source), *nodes.notes, *pairs.notes]
        alike = look_alikes(nodes.ids, spec.tidy_ids)
        notes += [alike] if alike is not None else []
        columns = taken_from(
            *(source.node_table, source.node, source.edge_table, source.edge, spec),
            find_task(nodes.labels.task).drawn if nodes.labels is not None else "",
        )
        return summarise(
            *(spec.out, nodes, pairs, adjacency, features, columns, spec.task, notes),
            to_predict=source.recipe is not None,
        )


def _opened(spec: ImportSpec, on_plan: Plan, opener: Opener) -> Source:
    """Open the tables and find the roles of their columns; report all their errors at once."""
    recipe = read_recipe(spec.like, spec.decimal) if spec.like is not None else None
    asked = spec  # the user's settings, without those that --like adds
    if recipe is not None:
        spec = recipe.applied(spec)
    found = Collected()
    with found.step():
        check_asked_for(asked)
    edge_table = node_table = edge = node = None
    with found.step():
        edge_table = opener(spec.edges, "edges", spec.delimiter, not spec.headerless)
    if spec.nodes is not None:
        with found.step():
            node_table = opener(spec.nodes, "nodes", spec.delimiter, not spec.headerless_nodes)
    tables = [table for table in (edge_table, node_table) if table is not None]
    if len(tables) == 1 + (spec.nodes is not None):
        with found.step():
            check_dropped(tables, asked.drop)
        with found.step():
            for name, said, path in (
                ("headerless", asked.headerless, asked.edges),
                ("headerless_nodes", asked.headerless_nodes, asked.nodes),
            ):
                if said and path is not None:
                    check_headerless(path, name)
    if edge_table is not None:
        with found.step():
            for_edges = recipe.for_edges(spec) if recipe is not None else spec
            edge = edge_columns(edge_table, for_edges)
    if spec.features_file is not None:
        with found.step():
            open_features(spec.features_file)
    encoders: Sequence[Encoder] = []
    if node_table is not None:
        with found.step():
            if recipe is not None:
                spec = recipe.with_columns(spec, node_table)
            node, encoders = _node_columns(node_table, spec, recipe, on_plan)
    found.raise_if_any()
    assert edge_table is not None
    assert edge is not None
    marked = spec.unknown_nodes == "add" and bool(encoders or spec.features_file)
    if recipe is not None:
        marked = recipe.marked
    return Source(spec, edge_table, edge, node_table, node, encoders, marked, recipe)


def _node_columns(
    table: Table, spec: ImportSpec, recipe: Recipe | None, on_plan: Plan
) -> tuple[NodeColumns, Sequence[Encoder]]:
    if recipe is not None:
        columns = node_columns(table, spec, [encoder.column for encoder in recipe.encoders])
        check_split(table, columns, spec)
        if columns.label:
            recipe.check_labels(table, columns.label, spec)
        return columns, recipe.encoders
    columns = node_columns(table, spec)
    check_split(table, columns, spec)
    proposal = propose(table, columns.features, spec)
    if proposal.columns:
        on_plan(proposal.title, rows_of(proposal.columns))
    return columns.without(proposal.left_out), proposal.encoders


def _nodes(source: Source, folder: Path, on_rows: Watch, found: Collected) -> Nodes:
    """Read the nodes, and collect their errors in `found` so that the edges are checked too."""
    spec, recipe = source.spec, source.recipe
    edges = (source.edge_table, source.edge)
    if source.node_table is None or source.node is None:
        return nodes_of_edges(*edges, spec, on_rows)
    problems = Problems(source.node_table)
    features = FeatureColumns(source.node_table, source.encoders, problems, source.marked)
    classes = recipe.classes if recipe is not None else None
    nodes = None
    with found.step():
        nodes = read_nodes(
            *(source.node_table, source.node, features, classes, spec, folder, on_rows, problems)
        )
    found.add(problems)
    if nodes is None:
        return nodes_of_edges(*edges, spec, on_rows)
    if spec.unknown_nodes == "add":
        mean = recipe.mean if recipe is not None else None
        nodes = add_unknown(nodes, *edges, spec, mean, folder, on_rows)
    return nodes


def _features(source: Source, nodes: Nodes, adjacency: Adjacency, folder: Path) -> Features:
    spec, recipe = source.spec, source.recipe
    if nodes.features is not None:
        features = nodes.features
    elif spec.features_file is not None:
        fills = parse_fills(spec.fill)
        features = copy_features(
            spec.features_file,
            len(nodes.ids) - nodes.added,
            folder,
            fills[0][1].value if fills else None,
            nodes.added,
            source.marked,
            recipe.mean if recipe is not None else None,
        )
    else:
        features = structural_features(adjacency, folder)
    if recipe is not None and features.width != len(recipe.mean):
        raise ValueError(
            f"there are {features.width} features, and {recipe.origin} has {len(recipe.mean)}"
        )
    return features


def _classes(source: Source, nodes: Nodes) -> tuple[list[str] | None, str]:
    """Return the names of the classes and the task; without labels, those of the graph of
    --like."""
    if nodes.labels is not None:
        return nodes.labels.classes, nodes.labels.task
    if source.recipe is None:
        return None, DEFAULT
    return source.recipe.classes, source.recipe.task


def _notes(source: Source) -> list[str]:
    """Return warnings about how the tables are read."""
    notes = []
    for table in (source.node_table, source.edge_table):
        if table is not None and table.header_doubt:
            notes.append(f"{table.name}: {table.header_doubt}; some names of columns are numbers")
    recipe, edges = source.recipe, source.edge_table
    if recipe is not None and source.edge.weight is None and "weight" in edges.columns:
        notes.append(f"{edges.name}: left aside 'weight', since {recipe.origin} has no weights")
    nodes, node = source.node_table, source.node
    if recipe is not None and nodes is not None and node is not None and not node.label:
        notes += recipe.lacking_labels(nodes, source.spec.drop)
    return notes


def _write_labels(nodes: Nodes, folder: Path) -> None:
    if nodes.labels is not None:
        nodes.labels.write(folder)
    for code, name in enumerate(SPLITS):
        members = nodes.split == code if nodes.split is not None else np.empty(0, bool)
        write_array(folder, name, np.flatnonzero(members).astype(np.int64))
