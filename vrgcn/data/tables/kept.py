"""Read the columns that a graph keeps for each edge or node.

Values wait in memory, 8 bytes for each row and column, until the adjacency is written: then those
of repeated edges become one (graph/kept.py says which row counts).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from numpy.typing import NDArray

from vrgcn.data.store import write_array
from vrgcn.data.store_format import KeptPlace, kept_file, numbered
from vrgcn.data.tables.adjacency import Adjacency
from vrgcn.data.tables.encoders.dates import no_date, parse_dates
from vrgcn.data.tables.keeping import Keep
from vrgcn.data.tables.problems import Problems
from vrgcn.data.tables.proposal import SAMPLE
from vrgcn.data.tables.reading import Table
from vrgcn.data.tables.splits import NO_SPLIT, split_codes
from vrgcn.data.tables.values import (
    is_list,
    is_nothing,
    is_number,
    is_text,
    is_time,
    to_numbers,
    to_text,
)
from vrgcn.files.mistakes import InputError
from vrgcn.files.npy import map_array
from vrgcn.files.setting_names import setting
from vrgcn.graph.kept import Column, ColumnKind, aligned, dtype_of
from vrgcn.graph.sparse import CSR
from vrgcn.graph.validation import SPLIT_WORDS

Values = NDArray[Any]
_MOST_CLASSES = 1 << 20


def kept_columns(table: Table, texts: Sequence[str], taken: Sequence[str]) -> list[KeptReader]:
    """The readers of a table's columns that are kept.

    texts: those of --keep
    taken: columns that cannot be kept, such as the ends of edges
    """
    found: dict[str, KeptReader] = {}
    for keep in map(Keep.parse, texts):
        for column in keep.named(table.columns):
            if column in taken:
                if column == keep.pattern:
                    raise InputError(
                        f"{table.name}: {setting('keep')} names {column!r}, which holds the ids of "
                        "nodes"
                    )
                continue
            found[column] = KeptReader(table, column, keep.kind, keep.format)
    return list(found.values())


class KeptReader:
    """Reads one column; the first rows say of which kind it is if the user does not.

    problems: of the table, in which cells of another kind are noted
    advice: what to do about such cells; "" for what a kept column needs
    seconds: dates are numbers, seconds since 1970
    """

    advice = ""

    def __init__(self, table: Table, column: str, kind: str, format: str) -> None:
        cells = table.kind(column)
        if is_list(cells) or not (is_text(cells) or is_number(cells) or is_time(cells)):
            raise InputError(
                f"{table.name}: column {column!r} holds {cells}, which cannot be kept; it must be "
                "text, number or date"
            )
        self.column = column
        self.problems = Problems(table)
        self.format = format or None
        self.seconds = is_number(cells) and self.format is None
        self.kind = cast(ColumnKind, kind or _seen_kind(table, column))
        self._classes: dict[str, int] = {}

    @property
    def classes(self) -> tuple[str, ...]:
        return tuple(self._classes)

    def read(self, start: int, cells: pa.Array) -> Values:
        """The values of some cells, the first of which is row `start`."""
        cells = cells.combine_chunks() if isinstance(cells, pa.ChunkedArray) else cells
        read: Callable[[int, pa.Array], Values] = getattr(self, f"_{self.kind}")
        return read(start, cells)

    def _number(self, start: int, cells: pa.Array) -> Values:
        values, wrong = to_numbers(cells, np.float64)
        self._note("holds text where numbers should be", start, wrong, cells)
        self._note("is infinite", start, np.flatnonzero(np.isinf(values)), cells)
        return values

    def _date(self, start: int, cells: pa.Array) -> Values:
        if self.seconds:
            return self._number(start, cells)
        seconds, wrong = parse_dates(cells, self.format)
        self._note(no_date(self.format), start, wrong, cells)
        return seconds

    def _class(self, start: int, cells: pa.Array) -> Values:
        text = pc.utf8_trim_whitespace(to_text(cells))
        known = ~is_nothing(text)
        for word in pc.unique(text.filter(pa.array(known))).to_pylist():
            self._classes.setdefault(word, len(self._classes))
        if len(self._classes) > _MOST_CLASSES:
            raise InputError(
                f"column {self.column!r} has more than {_MOST_CLASSES:,} different texts: it "
                f"cannot be kept as a class; see {setting('keep')}"
            )
        place = pc.index_in(text, pa.array(list(self._classes), pa.string())).fill_null(-1)
        return np.where(known, place.to_numpy().astype(np.int64), -1)

    def _split(self, start: int, cells: pa.Array) -> Values:
        codes, wrong = split_codes(to_text(cells))
        self._note(NO_SPLIT, start, wrong, cells)
        return codes

    def _note(self, what: str, start: int, rows: Values, cells: pa.Array) -> None:
        rows = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        kinds = " or ".join(k for k in ("number", "class", "date:FORMAT") if k != self.kind)
        advice = f"give {setting('keep', f'{self.column}=KIND')}, KIND {kinds}"
        self.problems.add(
            *(what, self.column, start + rows, cells.take(pa.array(rows)), self.advice or advice)
        )


def _seen_kind(table: Table, column: str) -> str:
    """The kind that the first rows of a column have."""
    _, batch = next(iter(table.batches([column])))
    cells = batch.column(column)[:SAMPLE]
    if is_time(cells.type):
        return "date"
    if is_number(cells.type):
        return "number"
    text = pc.utf8_trim_whitespace(to_text(cells))
    known = text.filter(pa.array(~is_nothing(text)))
    words = set(pc.unique(pc.utf8_lower(known)).to_pylist())
    if words and words <= SPLIT_WORDS.keys():
        return "split"
    if not len(to_numbers(known, np.float64)[1]):
        return "number"
    return "date" if not len(parse_dates(known, None)[1]) else "class"


class KeptRows:
    """Collects the kept columns of a table of edges, by relation."""

    def __init__(self, readers: Sequence[KeptReader]) -> None:
        self.readers = readers
        self._rows: dict[str, list[list[Values]]] = {}

    @property
    def problems(self) -> list[Problems]:
        return [reader.problems for reader in self.readers]

    def block(self, start: int, batch: pa.Table) -> list[Values]:
        """The columns of a batch whose first row is `start`."""
        return [reader.read(start, batch.column(reader.column)) for reader in self.readers]

    def add(self, relation: str, block: Sequence[Values], source: Values, target: Values) -> None:
        """Add edges of a relation: their columns and their ends, -1 where one is unknown."""
        right = (source >= 0) & (target >= 0)
        parts = [values[right] for values in (source, target, *block)]
        self._rows.setdefault(relation, []).append(parts)

    def write(self, relation: str, owner: str, adjacency: Adjacency, first: int) -> list[KeptPlace]:
        """Write the columns of a relation in the order of its matrix, and return their places.

        first: the number of the first column's file
        """
        matrix = matrix_in(adjacency.folder, adjacency.number)
        parts = self._rows.pop(relation, None) or [[np.empty(0, np.int64)] * 2]
        whole = [np.concatenate(values) for values in zip(*parts, strict=True)]
        source, target, *values = map(torch.from_numpy, whole)
        values = values or [torch.empty(0, dtype=dtype_of(r.kind)) for r in self.readers]
        columns = {
            reader.column: Column(reader.kind, each, reader.classes)
            for reader, each in zip(self.readers, values, strict=True)
        }
        found = aligned(matrix, source, target, columns, not adjacency.directed)
        return write_columns(owner, found, adjacency.folder, first)


def matrix_in(folder: Path, number: int) -> CSR:
    """The adjacency of a relation that was written to a folder, without its weights."""
    indptr, indices = (
        torch.from_numpy(np.asarray(map_array(folder / f"{name}.npy", read_only=False)))
        for name in numbered(("indptr", "indices"), number)
    )
    return CSR(indptr, indices, None, len(indptr) - 1)


def read_kept_nodes(table: Table, readers: Sequence[KeptReader], nodes: int) -> dict[str, Column]:
    """The kept columns of a table of nodes; unknown for nodes that only edges name.

    nodes: how many there are, those of the table first
    """
    names = [reader.column for reader in readers]
    parts: list[list[Values]] = [[] for _ in readers]
    for start, batch in table.batches(names):
        for reader, own in zip(readers, parts, strict=True):
            own.append(reader.read(start, batch.column(reader.column)))
    found = {}
    for reader, own in zip(readers, parts, strict=True):
        values = np.concatenate(own)
        unknown = np.nan if values.dtype == np.float64 else -1
        values = np.append(values, np.full(nodes - len(values), unknown, values.dtype))
        found[reader.column] = Column(reader.kind, torch.from_numpy(values), reader.classes)
    return found


def write_columns(
    owner: str, columns: dict[str, Column], folder: Path, first: int
) -> list[KeptPlace]:
    """Write columns as files with numbers from `first` on."""
    for number, column in enumerate(columns.values(), start=first):
        write_array(folder, kept_file(number), column.values.numpy())
    return [KeptPlace(owner, name, c.kind, c.classes) for name, c in columns.items()]
