"""Summarise an import as numbers and as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vrgcn.data.tables.dated.edges import EdgesInTime
from vrgcn.data.tables.dated.sight import Sight
from vrgcn.data.tables.dated.telling import told_of_times
from vrgcn.data.tables.nodes import Nodes
from vrgcn.data.tables.numbers import Numbers
from vrgcn.data.tables.read_tables import Degrees, ReadKind, ReadRelation
from vrgcn.data.tables.sources import OpenedTables
from vrgcn.data.tables.telling import offers, two_kinds_in_one, used_by_kinds, used_in_one
from vrgcn.data.tables.warnings import warnings
from vrgcn.files.wording import counted, printable
from vrgcn.graph.kinds import ONE
from vrgcn.graph.relations import relation_name
from vrgcn.graph.validation import SPLITS
from vrgcn.tasks import find_task
from vrgcn.tasks.spread import Spread

CLASSES_SHOWN = 20
RELATIONS_SHOWN = 20
BAR = 30


@dataclass(frozen=True)
class KindCounts:
    """The counts of a kind of nodes. isolated: nodes without an edge to another node, of any
    relation; table: what the nodes were read from"""

    name: str
    nodes: int
    features: int
    isolated: int
    table: str


@dataclass(frozen=True)
class RelationCounts:
    """The counts of a relation.

    rows: rows of the table that were read; skipped: rows that were skipped
    duplicates: rows that repeat an earlier one; reciprocal: rows that are the reverse of another,
        if direction does not count
    entries: entries of the adjacency matrix, two for an undirected edge and one for a self-loop
    self_loops: rows that join a node with itself
    one_way: it has no reverse; late: rows whose edge would lead back in time
    seen: it leads from facts to rows of a task, and is reported with these
    """

    name: str
    rows: int
    skipped: int
    entries: int
    duplicates: int
    reciprocal: int
    self_loops: int
    weighted: bool
    table: str
    one_way: bool = False
    late: int = 0
    seen: bool = False

    @property
    def edges(self) -> int:
        """The number of different pairs of nodes, ordered pairs if direction counts; the reverse
        relation has as many and is not counted again."""
        return self.rows - self.duplicates - self.reciprocal


@dataclass(frozen=True)
class ImportSummary:
    """The counts of an import; those of all kinds and relations together are sums.

    histogram: (least degree, greatest degree, nodes), for 0, 1, 2-3, 4-7, ...
    classes: name -> nodes, if the labels are classes; numbers: spread of the labels, if they are
        numbers and some are known
    unlabelled: nodes without a known label, of the kind that has labels
    splits: name -> nodes
    columns: lines that report which columns and files were used for what
    sparse: features that are stored sparse
    target: the kind that has the labels; None if there are none
    offers: what might be done with the tables in another way
    dated: lines that report what is dated, and what the rows of a task see
    """

    out: Path
    kinds: list[KindCounts]
    relations: list[RelationCounts]
    directed: bool
    histogram: list[tuple[int, int, int]]
    classes: dict[str, int] | None
    multilabel: bool
    numbers: Spread | None
    unlabelled: int
    splits: dict[str, int]
    columns: list[str]
    sparse: int = 0
    target: str | None = None
    warnings: list[str] = field(default_factory=list)
    offers: list[str] = field(default_factory=list)
    dated: list[str] = field(default_factory=list)

    @property
    def nodes(self) -> int:
        return sum(kind.nodes for kind in self.kinds)

    @property
    def width(self) -> int:
        return sum(kind.features for kind in self.kinds)

    @property
    def isolated(self) -> int:
        return sum(kind.isolated for kind in self.kinds)

    @property
    def rows(self) -> int:
        return sum(relation.rows for relation in self.relations)

    @property
    def skipped(self) -> int:
        return sum(relation.skipped for relation in self.relations)

    @property
    def entries(self) -> int:
        return sum(relation.entries for relation in self.relations)

    @property
    def duplicates(self) -> int:
        return sum(relation.duplicates for relation in self.relations)

    @property
    def reciprocal(self) -> int:
        return sum(relation.reciprocal for relation in self.relations)

    @property
    def self_loops(self) -> int:
        return sum(relation.self_loops for relation in self.relations)

    @property
    def weighted(self) -> bool:
        return any(relation.weighted for relation in self.relations)

    @property
    def edges(self) -> int:
        return sum(relation.edges for relation in self.relations)

    @property
    def labelled(self) -> int:
        """The number of nodes with a known label."""
        own = sum(kind.nodes for kind in self.kinds if kind.name == self.target)
        return own - self.unlabelled

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield from map(printable, self.columns)
        yield ""
        if [kind.name for kind in self.kinds] == [ONE]:
            yield from self._one_table()
        else:
            yield from self._several()
        yield from self._labels()
        yield from (f"warning: {printable(warning)}" for warning in self.warnings)

    def _one_table(self) -> Iterator[str]:
        yield f"nodes     {self.nodes:>14,}   {self.isolated:,} of them isolated"
        skipped = f", and {self.skipped:,} that were skipped" if self.skipped else ""
        yield f"rows      {self.rows:>14,}   in the table of edges{skipped}"
        pairs = "different pairs of nodes" + (" in their order" if self.directed else "")
        yield f"edges     {self.edges:>14,}   {pairs}; {self._edge_details()}"
        stored = "an edge is one" if self.directed else "an edge is two, a self-loop one"
        yield f"entries   {self.entries:>14,}   in the matrix; {stored}"
        if self.directed:
            size = 8 * (self.nodes + 1) + (12 if self.weighted else 8) * self.entries
            yield (
                f"reversed  {self.entries:>14,}   entries once more, for gradients to go back "
                f"along: {size / 1e6:,.1f} MB"
            )
        sparse = f"   {self.sparse:,} of them sparse" if self.sparse else ""
        yield f"features  {self.width:>14,}{sparse}"
        yield from self._histogram()

    def _several(self) -> Iterator[str]:
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
        yield f"{'relation':<{name}} {'edges':>14} {'rows':>9}   {self._reverses}"
        own = [each for each in self.relations if not each.seen]
        order = sorted(own, key=lambda each: -each.edges)
        shown = own if len(order) <= RELATIONS_SHOWN else order[:RELATIONS_SHOWN]
        for relation in shown:
            yield (
                f"{printable(relation.name):<{name}} {relation.edges:>14,} {relation.rows:>9,}   "
                f"{_details(relation)}"
            )
        if len(order) > RELATIONS_SHOWN:
            rest = order[RELATIONS_SHOWN:]
            edges = sum(each.edges for each in rest)
            yield f"and {counted(len(rest), 'more relation')} with {counted(edges, 'edge')}"
        relations = counted(len(self.relations), "relation")
        yield f"together {self.nodes:,} nodes and {self.edges:,} edges of {relations}"
        if self.dated:
            yield ""
            yield from map(printable, self.dated)
        if self.offers:
            yield ""
            yield from map(printable, self.offers)

    @property
    def _reverses(self) -> str:
        one_way = sum(relation.one_way for relation in self.relations)
        if not one_way:
            return "each with its reverse"
        return "one-way" if one_way == len(self.relations) else f"{one_way} are one-way"

    def _edge_details(self) -> str:
        """Return words for the rows that are not counted as edges, and for the self-loops."""
        parts = [f"{counted(self.duplicates, 'row repeats', 'rows repeat')} another"]
        if not self.directed:
            parts.append(f"{self.reciprocal:,} reversed")
        parts.append(counted(self.self_loops, "self-loop"))
        return ", ".join(parts)

    def _histogram(self) -> Iterator[str]:
        yield ""
        yield "edges into a node, and how many nodes have so many"
        most = max((count for _, _, count in self.histogram), default=1)
        for least, greatest, count in self.histogram:
            name = f"{least:,}" if least == greatest else f"{least:,}-{greatest:,}"
            yield f"  {name:>17} {_bar(count, most)} {count:,}"

    def _labels(self) -> Iterator[str]:
        yield ""
        if self.numbers is not None:
            yield f"numbers from {self.numbers}; {self.unlabelled:,} of the nodes unlabelled"
        elif self.classes is not None:
            yield from self._classes(self.classes)
        else:
            yield "no labels"
            return
        yield "split     " + ", ".join(f"{name} {self.splits[name]:,}" for name in SPLITS)

    def _classes(self, counts: dict[str, int]) -> Iterator[str]:
        several = ", several per node" if self.multilabel else ""
        classes = counted(len(counts), "class", "classes")
        yield f"{classes}{several}; {self.unlabelled:,} of the nodes unlabelled"
        order = sorted(counts.items(), key=lambda item: -item[1])
        labelled = max(self.labelled, 1)
        most = max(counts.values(), default=1)
        for name, count in order[:CLASSES_SHOWN]:
            shown = f"{printable(name)[:17]:>17}"
            yield f"  {shown} {_bar(count, most)} {count:,} ({count / labelled:.1%})"
        if len(order) > CLASSES_SHOWN:
            yield f"  {'':>17} and {len(order) - CLASSES_SHOWN:,} more"


def _details(relation: RelationCounts) -> str:
    """Return words for the rows that are not counted as edges, and for the self-loops."""
    parts = [printable(relation.table)]
    if relation.one_way:
        parts.append("one-way")
    if relation.late:
        parts.append(f"{counted(relation.late, 'row')} left out that would lead back in time")
    if relation.duplicates:
        parts.append(f"{counted(relation.duplicates, 'row repeats', 'rows repeat')} another")
    if relation.skipped:
        parts.append(f"{counted(relation.skipped, 'row')} skipped")
    if relation.self_loops:
        parts.append(counted(relation.self_loops, "self-loop"))
    return ", ".join(parts)


def summarise(
    source: OpenedTables,
    kinds: Sequence[ReadKind],
    relations: Sequence[ReadRelation],
    degrees: Degrees,
    notes: Sequence[str],
    sight: Sight | None = None,
) -> ImportSummary:
    """Return the summary of an import.

    notes: warnings from earlier steps
    sight: what the rows of a task see; None if there are none
    """
    labelled = next((k for k in kinds if k.source.name == source.labelled), None)
    nodes = Nodes(kinds[0].nodes.ids) if labelled is None else labelled.nodes
    isolated = float((degrees.others == 0).mean())
    seen = [] if sight is None else sight.relations
    alike = [] if source.named else two_kinds_in_one(source, nodes.ids)
    return ImportSummary(
        out=source.spec.out,
        kinds=[_kind_counts(kind, degrees) for kind in kinds],
        relations=[
            _relation_counts(relation, seen=any(relation is each for each in seen))
            for relation in relations
        ],
        directed=relations[0].adjacency.directed,
        histogram=degree_histogram(degrees.into),
        **_label_counts(nodes),
        columns=used_by_kinds(source) if source.named else used_in_one(source, nodes.labels),
        sparse=sum(kind.features.sparse for kind in kinds if kind.features is not None),
        target=source.labelled,
        warnings=[*notes, *alike, *warnings(source, kinds, relations, nodes, isolated)],
        offers=list(offers(source)) if source.named else [],
        dated=list(told_of_times(source, kinds, relations, sight)) if sight is not None else [],
    )


def _kind_counts(kind: ReadKind, degrees: Degrees) -> KindCounts:
    count = len(kind.nodes.ids)
    isolated = int((degrees.others[kind.start : kind.start + count] == 0).sum())
    table = "the ids that edges name" if kind.source.table is None else kind.source.table.name
    width = 0 if kind.features is None else kind.features.width
    return KindCounts(kind.source.name, count, width, isolated, table)


def _relation_counts(relation: ReadRelation, seen: bool) -> RelationCounts:
    pairs, adjacency = relation.pairs, relation.adjacency
    return RelationCounts(
        relation_name(relation.triple),
        rows=pairs.rows,
        skipped=pairs.skipped,
        entries=adjacency.entries,
        duplicates=adjacency.duplicates,
        reciprocal=adjacency.reciprocal,
        self_loops=pairs.loops,
        weighted=pairs.weighted,
        table=relation.source.table.name,
        one_way=relation.one_way,
        late=relation.pairs.late if isinstance(relation.pairs, EdgesInTime) else 0,
        seen=seen,
    )


def _label_counts(nodes: Nodes) -> dict[str, Any]:
    """Return the fields of a summary that are about labels and splits."""
    labels = nodes.labels
    classes = numbers = None
    if isinstance(labels, Numbers):
        numbers = Spread.of(labels.values[labels.known]) if labels.known.any() else None
    elif labels is not None:
        classes = dict(zip(labels.classes, labels.counts().tolist(), strict=True))
    sizes = dict.fromkeys(SPLITS, 0)
    if nodes.split is not None:
        sizes = {name: int((nodes.split == code).sum()) for code, name in enumerate(SPLITS)}
    return {
        "classes": classes,
        "multilabel": labels is not None and find_task(labels.task).several,
        "numbers": numbers,
        "unlabelled": 0 if labels is None else int((~labels.known).sum()),
        "splits": sizes,
    }


def degree_histogram(degree: NDArray[np.int64]) -> list[tuple[int, int, int]]:
    """Count nodes by degree in powers of two: (least, greatest, nodes), from 0 to the largest
    degree."""
    place = np.where(degree == 0, 0, np.frexp(degree.astype(np.float64))[1])
    counts = np.bincount(place).tolist()
    bounds = [(0, 0)] + [(2 ** (i - 1), 2**i - 1) for i in range(1, len(counts))]
    return [(least, greatest, n) for (least, greatest), n in zip(bounds, counts, strict=True)]


def _bar(count: int, most: int) -> str:
    filled = round(BAR * count / most) if most else 0
    return ("#" * max(filled, int(count > 0))).ljust(BAR)
