"""Report, in words, which columns and files an import used for what, and what looks odd."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import pyarrow as pa

from vrgcn.data.tables.ids import EndColumns, NodeIds, ids_of_edges, whole_numbers
from vrgcn.data.tables.kept import KeptReader
from vrgcn.data.tables.labels import ClassLabels
from vrgcn.data.tables.numbers import Numbers
from vrgcn.data.tables.reading import Table
from vrgcn.data.tables.sources import OpenedTables
from vrgcn.data.tables.spec import asked_task
from vrgcn.files.setting_names import COLUMN, setting
from vrgcn.files.wording import counted
from vrgcn.graph.edge_means import cannot_follow
from vrgcn.tasks import find_task

DENSE = 0.8  # share of the numbers from the first to the last that a column of ids has
_SHOWN = 8  # columns of a list
DIFFERENT = 0.95  # the columns of one kind end at about the same number
_TIMES = {"time", "timestamp", "date", "datetime"}
# Columns that name an end of an edge and no kind of nodes.
_ENDS = {
    *("source", "target", "src", "dst", "from", "to", "head", "tail", "u", "v", "i", "j", "a", "b"),
    *("node1", "node2", "parent", "child", "start", "end", "left", "right", "subject", "object"),
    *("x", "y", "s", "t", "origin", "destination", "sender", "receiver"),
}


def used_in_one(source: OpenedTables, labels: ClassLabels | Numbers | None) -> list[str]:
    """Return lines that report which columns and files were used for what, in a graph of one
    table."""
    [kind], [relation] = source.kinds, source.relations
    node_table, node, spec = kind.table, kind.columns, source.spec
    edge_table, edge = relation.table, relation.columns
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
            drawn = find_task(labels.task).drawn if labels is not None else ""
            split = f"{' '.join(f'{share:g}' for share in spec.ratio)} {drawn}"
        lines.append(
            f"{node_table.name}: id {node.id!r}, label {label or 'none'}, split {split}, "
            f"features from {features}"
        )
        if node.aside:
            lines.append(f"{node_table.name}: {ignored(node.aside)}")
        lines += told_of_kept(node_table.name, kind.keep, "node")
    else:
        lines.append(f"nodes: those of the edges; features from {features}")
    weight = f", weight {edge.weight!r}" if edge.weight else ""
    direction = "directed" if spec.directed else "undirected"
    lines.append(f"{edge_table.name}: from {edge.source!r} to {edge.target!r}{weight}, {direction}")
    aside = [column for column in edge.aside if column not in edge.kept]
    if aside:
        lines.append(
            f"{edge_table.name}: {ignored(aside)}; an edge has a weight "
            f"({setting('weight', COLUMN)}) and columns that are kept ({setting('keep', COLUMN)})"
        )
    lines += told_of_kept(edge_table.name, relation.keep, "edge")
    for table in (node_table, edge_table):
        if table is not None:
            lines += [f"{table.name}: {note}" for note in table.notes]
    return lines


def used_by_kinds(source: OpenedTables) -> list[str]:
    """Return lines that report which columns and files were used for what, in a graph of several
    kinds."""
    lines = []
    for kind in source.kinds:
        if kind.table is None or kind.columns is None:
            lines.append(f"{kind.name}: no table; its nodes are the ids that edges name")
            continue
        columns = kind.columns
        label = f", label {', '.join(map(repr, columns.label))}" if columns.label else ""
        split = f", split {columns.split!r}" if columns.split and kind.spec.ratio is None else ""
        if columns.label and kind.spec.ratio is not None:
            task = kind.spec.task if kind.spec.task != "auto" else "classes"
            shares = " ".join(f"{share:g}" for share in kind.spec.ratio)
            split = f", split {shares} {find_task(task).drawn}"
        made = f"features from {counted(len(columns.features), 'column')}"
        made = made if columns.features else "no feature columns"
        if kind.spec.features_file is not None:
            made = f"features from {kind.spec.features_file}"
        file = "" if kind.table.name == kind.name else f"{kind.table.name}: "
        lines.append(f"{kind.name}: {file}id {columns.id!r}{label}{split}, {made}")
        if columns.aside:
            lines.append(f"{kind.name}: {ignored(columns.aside)}")
        lines += told_of_kept(kind.name, kind.keep, "node")
    for relation in source.relations:
        own = relation.columns
        more = f", weight {own.weight!r}" if own.weight else ""
        more += f", relation {own.relation!r}" if own.relation else ""
        means = ", ".join(map(repr, own.features[:5])) + (", ..." if len(own.features) > 5 else "")
        more += f", means of {means} for the nodes at both ends" if own.features else ""
        title = source.spec.schema.short(relation.file)
        lines.append(
            f"{title}: {relation.table.name}: from {own.source!r} ({relation.file.source}) to "
            f"{own.target!r} ({relation.file.target}){more}"
        )
        aside = [column for column in own.aside if column not in own.kept]
        if aside and not relation.own:  # those of a kind's table are reported with the kind
            lines.append(f"{title}: {ignored(aside)}")
        lines += told_of_kept(title, relation.keep, "edge")
    for table in source.tables():
        lines += [f"{table.name}: {note}" for note in table.notes]
    return lines


def told_of_kept(owner: str, keep: Sequence[KeptReader], row: str) -> list[str]:
    """Return a line about the columns that are kept for each row of a table.

    row: a word for it, node or edge
    """
    if not keep:
        return []
    columns = ", ".join(f"{reader.column!r} ({reader.kind})" for reader in keep)
    return [f"{owner}: kept for each {row} {columns}"]


def remarks(source: OpenedTables) -> list[str]:
    """Return warnings about how the tables are read."""
    notes = [
        f"{table.name}: {table.header_doubt}; some names of columns are numbers"
        for table in source.tables()
        if table.header_doubt
    ]
    notes += source.notes
    for relation in source.relations:
        recipe, edges = relation.recipe, relation.table
        if recipe is not None and relation.columns.weight is None and "weight" in edges.columns:
            notes.append(
                f"{edges.name}: ignored column: 'weight', since {recipe.origin} has no weights"
            )
    for kind in source.kinds:
        if kind.recipe is not None and kind.table is not None and kind.columns is not None:
            lacking = kind.recipe.lacking_labels(kind.table, kind.spec.drop)
            notes += [] if kind.columns.label else lacking
    return notes


def two_kinds_in_one(source: OpenedTables, ids: NodeIds) -> list[str]:
    """Return a warning if the two columns of edges seem to hold ids of different kinds: user 5 and
    item 5 would be one node."""
    [relation], command = source.relations, with_kinds(source)
    ends = relation.columns.source, relation.columns.target
    numbers = whole_numbers(ids.text) if command else None
    if numbers is None or not _both_counted(relation.table, ends):
        return []
    one, other = (f"{_kind_name(column)} {numbers[0].as_py()}" for column in ends)
    return [
        f"{relation.table.name}: {ends[0]!r} and {ends[1]!r} both count from the same number, so "
        f"that {one} and {other} are one node here; if they are different kinds of nodes, give "
        f"{command}"
    ]


def with_kinds(source: OpenedTables) -> str:
    """Return the settings that import one table as a relation between two kinds; "" if the columns
    of its edges are not called as different kinds are, or if there are several tables."""
    if source.named:
        return ""
    [kind], [relation] = source.kinds, source.relations
    names = [_kind_name(end) for end in (relation.columns.source, relation.columns.target)]
    if not all(names) or names[0] == names[1] or _related(*names):
        return ""
    own, path = kind.spec.nodes, relation.file.path
    nodes = "" if own is None else f"{setting('nodes', f'{names[0]}={own}')} "
    return f"{nodes}{setting('edges', f'{names[0]}-NAME-{names[1]}={path}')}"


def _kind_name(column: str) -> str:
    """The name of a kind that a column of ids seems to have; "" of columns such as source."""
    plain = re.sub(r"[ _]?(id|ids|number|no|nr)$", "", column.strip().lower()).strip("_ ")
    name = re.sub(r"\W", "_", plain)
    return "" if name in _ENDS or not name or name.isdigit() else name


def _related(one: str, other: str) -> bool:
    """True if names say that both ends are of one kind: citing and cited, user1 and user2."""
    return one[:3] == other[:3] or one[-4:] == other[-4:]


def _both_counted(table: Table, ends: tuple[str, str]) -> bool:
    """True if both columns hold numbers counted from 0 or 1, almost without gaps, and not as many
    in one as in the other."""
    values = [whole_numbers(_distinct(table, column)) for column in ends]
    arrays = [each.to_numpy() for each in values if each is not None and len(each)]
    if len(arrays) < len(ends):
        return False
    first = {int(array.min()) for array in arrays}
    counted = all(len(array) > DENSE * (array.max() - array.min() + 1) for array in arrays)
    most = sorted(int(array.max()) for array in arrays)
    return len(first) == 1 and first <= {0, 1} and counted and most[0] < DIFFERENT * most[1]


def _distinct(table: Table, column: str) -> pa.Array:
    return ids_of_edges([EndColumns(table, (column,))], (), lambda name, rows: None).text


def ignored(columns: Sequence[str]) -> str:
    """Return words for columns that an import does not use."""
    return f"ignored {'columns' if len(columns) > 1 else 'column'}: {_listed(columns)}"


def _listed(columns: Sequence[str]) -> str:
    more = len(columns) - _SHOWN
    return ", ".join(map(repr, columns[:_SHOWN])) + (f", ... ({more} more)" if more > 0 else "")


def offers(source: OpenedTables) -> Iterator[str]:
    """Yield an offer for each table of edges whose rows have columns of their own."""
    for relation in source.relations:
        own = [c for c in relation.columns.features if c.lower() not in _TIMES]
        name = relation.file.name
        if own and name:
            shown = ", ".join(map(repr, own[:3])) + (", ..." if len(own) > 3 else "")
            yield (
                f"the nodes at both ends of {name!r} have the means of {shown}; to make each row "
                f"of {relation.table.name} a node of its own instead, give "
                f"{setting('rows_as_nodes', source.spec.schema.short(relation.file))}"
            )
    averaged = {source.spec.schema.short(r.file): r.columns.features for r in source.relations}
    fixed = cannot_follow(averaged)
    if fixed is not None:
        yield fixed
