"""Read all tables of an import: the nodes of each kind, then the edges of each relation.

Every kind is read by the same code, and so is every relation; all errors of all tables are raised
together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vrgcn.data.store_format import KeptPlace
from vrgcn.data.tables.adjacency import Adjacency, EdgeFile, write_adjacency
from vrgcn.data.tables.dated.edges import EdgesInTime, node_times
from vrgcn.data.tables.edge_means import EdgeMeans, NodeMeans
from vrgcn.data.tables.edges import End, read_edges, relation_names
from vrgcn.data.tables.feature_files import Features
from vrgcn.data.tables.features import FeatureColumns
from vrgcn.data.tables.ids import EndColumns, check_count
from vrgcn.data.tables.kept import KeptRows
from vrgcn.data.tables.narrowing import naming, naming_file
from vrgcn.data.tables.nodes import Nodes, add_unknown, nodes_of_edges, read_nodes
from vrgcn.data.tables.problems import Collected, Problems
from vrgcn.data.tables.recipe import ImportRecipe
from vrgcn.data.tables.sources import KindSource, OpenedTables, RelationSource
from vrgcn.data.tables.telling import with_kinds
from vrgcn.files.mistakes import InputError
from vrgcn.graph.pairs import EDGES
from vrgcn.graph.relations import REVERSE, relation_name
from vrgcn.tasks import DEFAULT

Watch = Callable[[str, int], None]


@dataclass(frozen=True)
class ReadKind:
    """The nodes of a kind as they were read.

    folder: of the kind's files
    start: the number of its first node among all nodes
    own: the features that its table or file made; None if there are none
    features: these, and those that columns of edges made after them
    """

    source: KindSource
    folder: Path
    nodes: Nodes
    start: int = 0
    own: Features | None = None
    features: Features | None = None


@dataclass(frozen=True)
class ReadRelation:
    """A relation as it was read.

    name: of the relation, between those of its kinds
    adjacency: without degrees in a graph of several kinds, whose relations may be many
    means: features that its columns make for nodes of the source kind and of the target kind
    kept: the columns that are kept for each edge, once they are written
    one_way: it has no reverse
    """

    source: RelationSource
    name: str
    pairs: EdgeFile
    adjacency: Adjacency
    means: tuple[NodeMeans, NodeMeans] | None = None
    kept: Sequence[KeptPlace] = ()
    one_way: bool = False

    @property
    def triple(self) -> tuple[str, str, str]:
        file = self.source.file
        turned = isinstance(self.pairs, EdgesInTime) and self.pairs.turned
        ends = (file.target, file.source) if turned else (file.source, file.target)
        same = self.one_way and not turned and file.source == file.target
        return ends[0], f"{REVERSE}{self.name}" if same else self.name, ends[1]


@dataclass(frozen=True)
class Degrees:
    """Edges of all relations at each node, (nodes,).

    into: edges into it; others: edges from and to other nodes
    """

    into: NDArray[np.int64]
    others: NDArray[np.int64]

    def add(self, adjacency: Adjacency) -> None:
        both = adjacency.degree + adjacency.out_degree
        np.add(self.into, adjacency.degree, out=self.into)
        np.add(self.others, both - 2 * adjacency.loops, out=self.others)


def read_kinds(
    source: OpenedTables, folder: Path, on_rows: Watch, found: Collected
) -> list[ReadKind]:
    """Read the nodes of all kinds; collect their errors so that the edges are checked too."""
    kinds: list[ReadKind] = []
    start = 0
    for place, kind in enumerate(source.kinds):
        own = folder / f"kind-{place}"
        own.mkdir()
        ends = _ends_of(source, kind.name)
        with naming_file("nodes", kind.name, kind.spec.nodes), naming(kind.name):
            nodes = _nodes(kind, ends, own, on_rows, found)
        if source.named and not len(nodes.ids):
            with found.step():
                raise InputError(f"the kind {kind.name!r} has no nodes: no edge names one")
        kinds.append(ReadKind(kind, own, nodes, start))
        start += len(nodes.ids)
    check_count(start)
    return kinds


def _ends_of(source: OpenedTables, kind: str) -> list[EndColumns]:
    """The columns of edges that hold ids of a kind."""
    ends = []
    for each in source.relations:
        sides = ((each.file.source, each.columns.source), (each.file.target, each.columns.target))
        columns = tuple(column for end, column in sides if end == kind)
        ends += [EndColumns(each.table, columns)] if columns else []
    return ends


def _nodes(
    kind: KindSource, ends: Sequence[EndColumns], folder: Path, on_rows: Watch, found: Collected
) -> Nodes:
    spec, recipe = kind.spec, kind.recipe
    if kind.table is None or kind.columns is None:
        return nodes_of_edges(ends, spec, on_rows)
    problems = Problems(kind.table)
    features = FeatureColumns(kind.table, kind.encoders, problems, kind.marked, kind.learned)
    classes = recipe.classes if recipe is not None else None
    nodes = None
    with found.step():
        nodes = read_nodes(
            *(kind.table, kind.columns, features, classes, spec, folder, on_rows, problems),
            given_split=kind.split,
        )
    found.add(problems)
    if nodes is None:
        return nodes_of_edges(ends, spec, on_rows)
    if spec.unknown_nodes == "add":
        mean = recipe.mean if recipe is not None else None
        nodes = add_unknown(nodes, ends, spec, mean, folder, on_rows)
    return nodes


def read_relations(
    source: OpenedTables,
    kinds: Sequence[ReadKind],
    folder: Path,
    on_rows: Watch,
    found: Collected,
) -> tuple[list[ReadRelation], dict[str, ImportRecipe], Degrees]:
    """Read the edges of all relations and write their matrices; raise all errors of all tables.

    Returns the relations, a recipe for each table of edges, and the edges at each node.
    """
    total = sum(len(kind.nodes.ids) for kind in kinds)
    command = with_kinds(source)
    advice = f"if its nodes are of another kind, give {command}" if command else ""
    ends = {
        kind.source.name: End(
            *(kind.source.name, kind.nodes.ids, kind.source.owner, kind.start, advice)
        )
        for kind in kinds
    }
    read: list[tuple[RelationSource, dict[str, EdgeFile], EdgeMeans | None, KeptRows | None]] = []
    number = 0
    for each in source.relations:
        title, path = each.file.title, each.file.path
        short = source.spec.schema.short(each.file)
        with found.step(), naming_file("edges", title, path), naming(short):
            own: dict[str, EdgeFile] = {}
            for name in _names(each, on_rows) if source.named else [EDGES]:
                weighted = each.columns.weight is not None
                own[name] = EdgeFile(each.table.name, folder, total, weighted, number)
                number += 1
            sides = ends[each.file.source], ends[each.file.target]
            means = _means(each, sides, on_rows)
            kept = KeptRows(each.keep) if each.keep else None
            problems = read_edges(
                *(each.table, each.columns, sides, own, means, kept),
                *(list(ends.values()), each.spec, on_rows),
                gaps=each.own,
            )
            found.add(problems)
            if means is not None:
                found.add(means.problems)
            for noted in kept.problems if kept is not None else ():
                found.add(noted)
            read.append((each, own, means, kept))
    found.raise_if_any()
    degrees = Degrees(np.zeros(total, np.int64), np.zeros(total, np.int64))
    times = source.times
    node_time = np.empty(0) if times is None else node_times(times, kinds)
    relations: list[ReadRelation] = []
    recipes: dict[str, ImportRecipe] = {}
    second: list[ReadRelation] = []  # of tables whose edges lead both ways, after all others
    written = 0
    for each, pairs, means, kept in read:
        made = []
        for name, given in pairs.items():
            ways: Sequence[EdgeFile] = [given]
            if times is not None and times.concerns(each.file):
                ways = EdgesInTime.ways(given, node_time, number + len(second))
            features = None if means is None else means.finish(name)
            *other, relation = [
                _written(source, each, name, way, features, degrees) for way in ways
            ]
            second += other
            if kept is not None:
                places = kept.write(
                    name, relation_name(relation.triple), relation.adjacency, written
                )
                relation = replace(relation, kept=places)
                written += len(places)
            made.append(relation)
        relations += made
        recipes[each.file.owner] = each.recipe or _edge_recipe(each, made, means)
    return [*relations, *second], recipes, degrees


def _written(
    source: OpenedTables,
    relation: RelationSource,
    name: str,
    pairs: EdgeFile,
    means: tuple[NodeMeans, NodeMeans] | None,
    degrees: Degrees,
) -> ReadRelation:
    """Write the matrix of a relation, and count its edges."""
    adjacency = write_adjacency(pairs, source.named or source.spec.directed)
    degrees.add(adjacency)
    if source.named:
        adjacency = adjacency.without_degrees()
    one_way = isinstance(pairs, EdgesInTime)
    return ReadRelation(relation, name, pairs, adjacency, means, one_way=one_way)


def _names(relation: RelationSource, on_rows: Watch) -> list[str]:
    """The names of the relations in a table of edges."""
    if relation.file.name is not None:
        return [relation.file.name]
    if relation.recipe is not None:
        return list(relation.recipe.relations)
    column = relation.columns.relation
    assert column is not None
    names = relation_names(relation.table, column, on_rows)
    if not names:
        raise InputError(f"{relation.table.name}: column {column!r} names no relation")
    return names


def _means(relation: RelationSource, ends: tuple[End, End], on_rows: Watch) -> EdgeMeans | None:
    if not relation.encoders:
        return None
    recipe = relation.recipe
    means = EdgeMeans(
        relation.table,
        relation.encoders,
        (len(ends[0].ids), len(ends[1].ids)),
        recipe.marks if recipe is not None else None,
        recipe.mean if recipe is not None else None,
    )
    means.fit(on_rows)
    return means


def _edge_recipe(
    relation: RelationSource, made: Sequence[ReadRelation], means: EdgeMeans | None
) -> ImportRecipe:
    mean = means.usual if means is not None else np.empty(0, np.float32)
    recipe = ImportRecipe.of(
        *(relation.spec, None, relation.columns, relation.encoders, False, mean, None, DEFAULT)
    )
    marks = {each.name: [end.marked for end in each.means] for each in made if each.means}
    return replace(
        recipe,
        relation_column=relation.columns.relation,
        relations=[each.name for each in made],
        marks=marks,
    )
