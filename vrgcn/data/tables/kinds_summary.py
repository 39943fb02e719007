"""Summarise an import of several kinds of nodes: kinds, relations, and the columns of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from vrgcn.data.tables.narrowing import naming
from vrgcn.data.tables.nodes import Nodes
from vrgcn.data.tables.read_tables import ReadKind, ReadRelation
from vrgcn.data.tables.sources import OpenedTables
from vrgcn.data.tables.summary import (
    ImportSummary,
    degree_histogram,
    edge_warnings,
    feature_warnings,
    label_counts,
    label_warnings,
)
from vrgcn.data.tables.telling import ignored, told_of_kept
from vrgcn.data.tables.wording import counted
from vrgcn.files.printable import printable
from vrgcn.files.setting_names import setting
from vrgcn.graph.edge_means import cannot_follow
from vrgcn.tasks import find_task

MOST_SHOWN = 20  # relations that are shown
_TIMES = {"time", "timestamp", "date", "datetime"}


@dataclass(frozen=True)
class KindCounts:
    """isolated: nodes without an edge of any relation; table: what the nodes were read from"""

    name: str
    nodes: int
    features: int
    isolated: int
    table: str


@dataclass(frozen=True)
class RelationCounts:
    """edges: different pairs of nodes; the reverse has as many and is not counted again"""

    name: str
    edges: int
    rows: int
    skipped: int
    duplicates: int
    self_loops: int
    table: str


@dataclass(frozen=True)
class KindsSummary(ImportSummary):
    """The counts of an import of several kinds; the inherited ones are those of all together.

    target: the kind that has the labels; None if there are none
    offers: what might be done with the tables in another way
    """

    kinds: list[KindCounts] = field(default_factory=list)
    relations: list[RelationCounts] = field(default_factory=list)
    target: str | None = None
    offers: list[str] = field(default_factory=list)

    @property
    def labelled(self) -> int:
        own = sum(kind.nodes for kind in self.kinds if kind.name == self.target)
        return own - self.unlabelled

    def _lines(self) -> Iterator[str]:
        yield from map(printable, self.columns)
        yield ""
        names = [*(each.name for each in self.kinds), *(each.name for each in self.relations)]
        name = min(max(map(len, map(printable, [*names, "relation"]))), 40)
        yield f"{'kind':<{name}} {'nodes':>14} {'features':>9}   from"
        for kind in self.kinds:
            isolated = f"; {kind.isolated:,} of them isolated" if kind.isolated else ""
            yield (
                f"{printable(kind.name):<{name}} {kind.nodes:>14,} {kind.features:>9,}   "
                f"{printable(kind.table)}{isolated}"
            )
        yield ""
        yield f"{'relation':<{name}} {'edges':>14} {'rows':>9}   each with its reverse"
        order = sorted(self.relations, key=lambda each: -each.edges)
        shown = self.relations if len(order) <= MOST_SHOWN else order[:MOST_SHOWN]
        for relation in shown:
            yield (
                f"{printable(relation.name):<{name}} {relation.edges:>14,} {relation.rows:>9,}   "
                f"{_details(relation)}"
            )
        if len(order) > MOST_SHOWN:
            rest = order[MOST_SHOWN:]
            edges = sum(each.edges for each in rest)
            yield f"and {counted(len(rest), 'more relation')} with {counted(edges, 'edge')}"
        relations = counted(len(self.relations), "relation")
        yield f"together {self.nodes:,} nodes and {self.edges:,} edges of {relations}"
        if self.offers:
            yield ""
            yield from map(printable, self.offers)
        yield from self._labels()
        yield from (f"warning: {printable(warning)}" for warning in self.warnings)


def _details(relation: RelationCounts) -> str:
    """Return words for the rows that are not counted as edges, and for the self-loops."""
    parts = [printable(relation.table)]
    if relation.duplicates:
        parts.append(f"{counted(relation.duplicates, 'row repeats', 'rows repeat')} another")
    if relation.skipped:
        parts.append(f"{counted(relation.skipped, 'row')} skipped")
    if relation.self_loops:
        parts.append(counted(relation.self_loops, "self-loop"))
    return ", ".join(parts)


def summarise_kinds(
    source: OpenedTables,
    kinds: Sequence[ReadKind],
    relations: Sequence[ReadRelation],
    degree: NDArray[np.int64],
    notes: list[str],
) -> KindsSummary:
    """Return the summary of an import of several kinds.

    degree: (nodes,) edges of each node, those of all relations and in both directions
    notes: warnings from earlier steps
    """
    labelled = next((k for k in kinds if k.source.name == source.labelled), None)
    nodes = Nodes(kinds[0].nodes.ids) if labelled is None else labelled.nodes
    total = len(degree)
    return KindsSummary(
        out=source.spec.out,
        nodes=total,
        rows=sum(r.pairs.rows for r in relations),
        skipped=sum(r.pairs.skipped for r in relations),
        entries=sum(r.adjacency.entries for r in relations),
        duplicates=sum(r.adjacency.duplicates for r in relations),
        reciprocal=0,
        self_loops=sum(r.pairs.loops for r in relations),
        isolated=int((degree == 0).sum()),
        directed=True,
        weighted=any(r.pairs.weighted for r in relations),
        histogram=degree_histogram(degree),
        width=sum(k.features.width for k in kinds if k.features is not None),
        sparse=sum(k.features.sparse for k in kinds if k.features is not None),
        **label_counts(nodes),
        columns=_columns(source),
        warnings=[*notes, *_warnings(source, kinds, relations, nodes)],
        kinds=list(_kind_counts(kinds, degree)),
        relations=[_relation_counts(each) for each in relations],
        target=source.labelled,
        offers=list(_offers(source)),
    )


def _kind_counts(kinds: Sequence[ReadKind], degree: NDArray[np.int64]) -> Iterator[KindCounts]:
    start = 0
    for kind in kinds:
        count = len(kind.nodes.ids)
        isolated = int((degree[start : start + count] == 0).sum())
        table = "the ids that edges name" if kind.source.table is None else kind.source.table.name
        width = 0 if kind.features is None else kind.features.width
        yield KindCounts(kind.source.name, count, width, isolated, table)
        start += count


def _relation_counts(relation: ReadRelation) -> RelationCounts:
    pairs, adjacency = relation.pairs, relation.adjacency
    return RelationCounts(
        "-".join(relation.triple),
        adjacency.entries,
        pairs.rows,
        pairs.skipped,
        adjacency.duplicates,
        pairs.loops,
        relation.source.table.name,
    )


def _columns(source: OpenedTables) -> list[str]:
    """Return lines that report which columns and files were used for what."""
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


def _warnings(
    source: OpenedTables, kinds: Sequence[ReadKind], relations: Sequence[ReadRelation], nodes: Nodes
) -> Iterator[str]:
    for relation in relations:
        name = "-".join(relation.triple)
        if not relation.adjacency.entries:
            yield f"{name}: the relation has no edges"
        found = edge_warnings(relation.pairs, relation.adjacency, isolated=False)
        yield from (f"{name}: {warning}" for warning in found)
    for kind in kinds:
        if not source.like and kind.features is not None:
            for warning in feature_warnings(kind.features):
                yield f"{kind.source.name}: {warning}"
    if not source.like:
        with naming(source.labelled or ""):
            yield from label_warnings(nodes, source.spec.task)


def _offers(source: OpenedTables) -> Iterator[str]:
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
