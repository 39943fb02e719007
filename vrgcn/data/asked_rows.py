"""Rows that are asked about, from a table: entity and time of each, as the import reads them.

The columns are called as in the table of rows that was imported, and ids, dates and the columns
that features are made of are read the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from torch import Tensor

from vrgcn.data.tables.dated.settings import DatedColumn
from vrgcn.data.tables.dated.times import date_reader
from vrgcn.data.tables.features import FeatureColumns
from vrgcn.data.tables.ids import NodeIds, tidied
from vrgcn.data.tables.problems import Problems
from vrgcn.data.tables.reading import Table
from vrgcn.data.tables.recipe import ImportRecipe
from vrgcn.data.tables.values import to_text
from vrgcn.files.mistakes import InputError
from vrgcn.files.wording import counted
from vrgcn.graph.dated import TimedRows
from vrgcn.graph.graph import Graph

Recipes = Mapping[str, ImportRecipe]
Places = Callable[[str, pa.Array], NDArray[np.int64]]


@dataclass(frozen=True)
class AskedRows:
    """rows: with times and entities
    own: (rows, columns) features of the rows' own columns
    given: the columns that say of each row which it is, as they were given
    notes: remarks for the user
    """

    rows: TimedRows
    own: NDArray[np.float32]
    given: pa.Table
    notes: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.rows.times)

    def part(self, start: int, count: int) -> AskedRows:
        """Some rows, one after the other."""
        some = slice(start, start + count)
        entities = {name: numbers[some] for name, numbers in self.rows.entities.items()}
        rows = TimedRows(self.rows.times[some], entities)
        return AskedRows(rows, self.own[some], self.given.slice(start, count))


class AskedColumns:
    """Columns of a table of predictions that say of which row each is; see `IdColumns`."""

    def __init__(self, given: pa.Table) -> None:
        self._given = given.combine_chunks()
        self.first = 0  # node that stands for the first row

    @property
    def fields(self) -> list[tuple[str, pa.DataType]]:
        """Names and types of the columns."""
        return [(part.name, part.type) for part in self._given.schema]

    def arrays(self, nodes: Tensor) -> list[pa.Array]:
        """The columns of some rows, (nodes,) each."""
        some = self._given.take(pa.array((nodes - self.first).numpy()))
        return [column.combine_chunks() for column in some.columns]


def read_asked(
    table: Table, graph: Graph, recipes: Recipes, places: Places | None = None
) -> AskedRows:
    """Read all rows of a table.

    graph: with `dated`; recipes: of its import
    places: from a kind and ids to the places of these entities, -1 if they are not there; None:
        their node numbers
    """
    places = places or partial(_nodes, graph, recipes)
    dated = graph.dated
    assert dated is not None
    at, ends = dated.times[dated.rows], entity_columns(graph, recipes)
    recipe = recipes.get(dated.rows)
    encoders = [] if recipe is None else recipe.encoders
    wanted = [*(column for _, column in ends.values()), at]
    _check(table, dict.fromkeys([*wanted, *(encoder.column for encoder in encoders)]))
    date, problems = date_reader(table, DatedColumn(at)), Problems(table)
    features = FeatureColumns(table, encoders, problems, recipe is not None and recipe.marked)
    texts: dict[str, list[pa.Array]] = {name: [] for name in ends}
    times, blocks, given = [], [], []
    for start, batch in table.batches([*dict.fromkeys([*wanted, *(e.column for e in encoders)])]):
        values = date.read(start, batch.column(at))
        problems.add("is empty", at, start + np.flatnonzero(np.isnan(values)), None)
        times.append(values)
        for name, (_, column) in ends.items():
            texts[name].append(to_text(batch.column(column)))
        blocks.append(features.block(start, batch))
        given.append(batch.select(list(dict.fromkeys(wanted))))
    for found in (date.problems, problems):
        lines = found.lines(advice=False)  # what an import could do differently does not help
        if lines:
            raise InputError("\n".join(lines))
    count = sum(map(len, times))
    if not count:
        raise InputError(f"{table.name} has no rows")
    entities, notes = {}, []
    for name, (kind, column) in ends.items():
        entities[name] = places(kind, pa.chunked_array(texts[name]).combine_chunks())
        unknown = int((entities[name] < 0).sum())
        if unknown:
            rows = counted(unknown, "row names", "rows name")
            notes.append(
                f"{table.name}: {rows} a {kind} in column {column!r} that the graph does not have: "
                "such a row sees no fact"
            )
    return AskedRows(
        TimedRows(np.concatenate(times), entities),
        np.concatenate(blocks),
        pa.Table.from_batches(given),
        notes,
    )


def entity_columns(graph: Graph, recipes: Recipes) -> dict[str, tuple[str, str]]:
    """For each relation from an entity to rows, the entity's kind and the column that names it."""
    dated = graph.dated
    assert dated is not None
    found = {}
    for name in dict.fromkeys(path.entity for path in dated.paths):
        part = graph.relations[name]
        recipe = recipes.get(f"{dated.rows}-{part.triple[1]}-{part.source}")
        found[name] = part.source, part.source if recipe is None else recipe.target
    return found


def _check(table: Table, wanted: Mapping[str, None]) -> None:
    lacking = [column for column in wanted if column not in table.columns]
    if lacking:
        raise InputError(
            f"{table.name} lacks {', '.join(map(repr, lacking))}: rows need the columns "
            f"{', '.join(map(repr, wanted))}, as the imported rows have them; it has "
            f"{', '.join(map(repr, table.columns))}"
        )


def _nodes(graph: Graph, recipes: Recipes, kind: str, asked: pa.Array) -> NDArray[np.int64]:
    """(rows,) node numbers of entities; -1 for those that the graph does not have."""
    ways = recipes[kind].options.get("tidy_ids", ()) if kind in recipes else ()
    known = to_text(graph.names.ids_of(kind))
    found = NodeIds(tidied(known, ways)).places(tidied(asked, ways))
    return np.where(found >= 0, found + graph.kinds.range(kind).start, -1)
