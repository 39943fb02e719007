"""Relations from facts to the rows of a task that see them, and what rows know of these facts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vrgcn.data.tables.adjacency import EdgeFile, write_adjacency
from vrgcn.data.tables.dated.edges import node_times
from vrgcn.data.tables.dated.settings import OF, TaskRows
from vrgcn.data.tables.dated.times import Times
from vrgcn.data.tables.edge_means import NodeMeans
from vrgcn.data.tables.kept import matrix_in
from vrgcn.data.tables.read_tables import Degrees, ReadKind, ReadRelation
from vrgcn.data.tables.rows import NumberedRows
from vrgcn.data.tables.schema import RelationFile
from vrgcn.data.tables.sources import OpenedTables
from vrgcn.graph.dated import Dated, FactPath, Int64s, Lookback, Seen, TimedRows
from vrgcn.graph.relations import relation_name


@dataclass(frozen=True)
class Sight:
    """What the rows of a task see.

    relations: to the rows, from the facts that they see
    features: numbers and ages of these facts, for each row
    dated: what the graph keeps of it
    without: rows that see no fact, by path
    """

    relations: list[ReadRelation]
    features: NodeMeans
    dated: Dated
    without: dict[str, int] = field(default_factory=dict)


def look_back(
    source: OpenedTables,
    kinds: Sequence[ReadKind],
    relations: Sequence[ReadRelation],
    folder: Path,
    degrees: Degrees,
) -> Sight:
    """Write the relations from facts to the rows of the task that see them."""
    times = source.times
    assert times is not None
    return _Looking(times, kinds, relations, folder, degrees).sight()


class _Looking:
    def __init__(
        self,
        times: Times,
        kinds: Sequence[ReadKind],
        relations: Sequence[ReadRelation],
        folder: Path,
        degrees: Degrees,
    ) -> None:
        self._times, self._task, self._folder, self._degrees = times, times.rows, folder, degrees
        self._relations, self._made = relations, list[ReadRelation]()
        self._matrices = {relation_name(r.triple): r.adjacency.number for r in relations}
        places = {kind.source.name: kind for kind in kinds}
        self._rows = places[self._task.kind]
        self._time = node_times(times, kinds)
        self._levels: NDArray[np.int8] | None = None
        if self._task.past is not None:
            start = places[self._task.past].start
            self._levels = np.zeros(len(self._time), np.int8)
            self._levels[start : start + len(times.split)] = _levels(times.split, unknown=1)

    def sight(self) -> Sight:
        task, times = self._task, self._times
        asked = self._asked()
        paths, columns, without = [], [], {}
        lookback, group = Lookback(self._edges, self._time, self._levels), None
        for path, facts in _paths(task, times, self._relations):
            if group != path.by:  # the facts of one entity: other entities' make room for them
                lookback, group = Lookback(self._edges, self._time, self._levels), path.by
            seen = lookback.seen(path, asked)
            last = {self._relation(path, facts, seen, count): count for count in task.last}
            paths.append(replace(path, last=last))
            columns.append(seen.features)
            without[path.name] = int((seen.features[:, 0] == 0).sum())
        names = [name for path in paths for name in path.features]
        values = np.concatenate([np.empty((len(asked.times), 0), np.float32), *columns], axis=1)
        dated = Dated(task.kind, times.columns, tuple(paths), task.past, task.known_after)
        return Sight(self._made, NodeMeans(names, values, False), dated, without)

    def _asked(self) -> TimedRows:
        """The rows with their times and entities."""
        entities = {}
        for entity in self._task.entities:
            name = relation_name((entity, OF, self._task.kind))
            ends, own = self._edges(name)
            entities[name] = np.full(len(self._rows.nodes.ids), -1)
            entities[name][own - self._rows.start] = ends
        levels = _levels(self._times.split, unknown=2)
        return TimedRows(self._times.values[self._task.kind], entities, levels)

    def _edges(self, relation: str) -> tuple[Int64s, Int64s]:
        A = matrix_in(self._folder, self._matrices[relation])
        return A.indices.numpy(), A.row_of_entry.numpy()

    def _relation(self, path: FactPath, facts: str, seen: Seen, count: int) -> str:
        """Write the relation from the last `count` facts to the rows; return its name."""
        number = len(self._relations) + len(self._made)
        name = f"last{'' if count == 1 else f'_{count}'}{path.name.removeprefix(facts)}"
        pairs = EdgeFile(
            *(str(self._task.path), self._folder, len(self._time)), weighted=False, number=number
        )
        rows, found = seen.last(count)
        pairs.append(found, self._rows.start + rows, None)
        adjacency = write_adjacency(pairs, directed=True)
        self._degrees.add(adjacency)
        table = self._rows.source.table
        assert table is not None
        file = RelationFile(facts, name, self._task.kind, self._task.path)
        source = replace(self._relations[0].source, file=file, table=table)
        relation = ReadRelation(source, name, pairs, adjacency.without_degrees(), one_way=True)
        self._made.append(relation)
        return relation_name(relation.triple)


def _levels(split: NDArray[np.int64], unknown: int) -> NDArray[np.int8]:
    return np.where(split < 0, unknown, split).astype(np.int8)


def _paths(
    task: TaskRows, times: Times, relations: Sequence[ReadRelation]
) -> Iterator[tuple[FactPath, str]]:
    """Yield each way from a row to facts, without its relations to the rows, and the facts' kind.

    The facts are those of the row's entity; then those of another entity that facts of the first
    one name, such as the constructor of a driver's last result.
    """
    keys = [each for each in relations if _leads_to_facts(each, task, times)]
    taken: set[str] = set()

    def free(*names: str) -> str:
        name = next(name for name in names if name not in taken)
        taken.add(name)
        return name

    for entity in task.entities:
        rows = relation_name((entity, OF, task.kind))
        own = [key for key in keys if key.triple[0] == entity]
        more = len(task.entities) > 1
        for key in own:
            kind, of = key.triple[2], f"{key.triple[2]}_of_{entity}"
            name = free(*([] if more else [kind]), of, f"{of}_{key.name}")
            yield FactPath(name, rows, relation_name(key.triple), {}), kind
        for other, by in _met(own, keys, task).items():
            for key in keys:
                if key.triple[0] == other:
                    name = f"{key.triple[2]}_by_{other}"
                    name = free(name, f"{name}_of_{entity}", f"{name}_of_{entity}_{key.name}")
                    yield FactPath(name, rows, relation_name(key.triple), {}, by), key.triple[2]


def _leads_to_facts(relation: ReadRelation, task: TaskRows, times: Times) -> bool:
    source, _, target = relation.triple
    return source not in times.values and target in times.values and target != task.kind


def _met(
    own: Sequence[ReadRelation], keys: Sequence[ReadRelation], task: TaskRows
) -> Mapping[str, tuple[tuple[str, str], ...]]:
    """Other entities that facts of an entity name, one each, and the pairs of relations to these
    facts."""
    found: dict[str, tuple[tuple[str, str], ...]] = {}
    for one in own:
        for other in keys:
            source, _, facts = other.triple
            if facts != one.triple[2] or source in task.entities or not _names_one(other):
                continue
            pair = relation_name(one.triple), relation_name(other.triple)
            found[source] = (*found.get(source, ()), pair)
    return found


def _names_one(relation: ReadRelation) -> bool:
    """True if a fact names one entity: the facts' own table does."""
    return relation.source.own or isinstance(relation.source.table, NumberedRows)
