"""Columns that a graph keeps for each of its edges or nodes: to predict them, or to split by them.

    number   float64, NaN where unknown
    date     float64, seconds since 1970 in UTC, NaN where unknown
    class    int64, the place among the names of the classes, -1 where unknown
    split    int64, 0 train, 1 val, 2 test, -1 for none

Rows that repeat an edge are one edge, and one of them counts, with all of its columns: the first in
time, by the first column of dates; of the same time the one of the earlier split; else the first
that was given. What was known of an edge at its time is then never mixed with what came later, and
an edge of training is no test.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isnan
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vrgcn.files.mistakes import InputError
from vrgcn.graph.pairs import EDGES
from vrgcn.graph.sparse import CSR
from vrgcn.graph.validation import SPLIT_WORDS

ColumnKind = Literal["number", "class", "date", "split"]
COLUMN_KINDS: tuple[ColumnKind, ...] = get_args(ColumnKind)
NODES = "nodes"  # the owner of columns of nodes in a graph without kinds; EDGES that of edges


@dataclass(frozen=True, eq=False)
class Column:
    """A value for each edge of a relation, in the order of its adjacency's entries; or for each
    node of a kind.

    values: (rows,) as the kind says, see above
    classes: names of the classes of the kind class
    """

    kind: ColumnKind
    values: Tensor
    classes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.values)

    @property
    def known(self) -> Tensor:
        """(rows,) bool: whether a value is known."""
        return ~self.values.isnan() if self.values.is_floating_point() else self.values >= 0

    def take(self, places: Tensor) -> Column:
        """The values at some places."""
        return Column(self.kind, self.values[places], self.classes)


Columns = Mapping[str, Column]
# The kept columns of a graph, by the name of a relation or a kind; "edges" and "nodes" without
# kinds.
Kept = Mapping[str, Columns]


def dtype_of(kind: ColumnKind) -> torch.dtype:
    """The type that the values of a kind have."""
    return torch.float64 if kind in ("number", "date") else torch.int64


def row_of_entry(
    A: CSR, sources: Tensor, targets: Tensor, columns: Columns, undirected: bool
) -> Tensor:
    """(entries of A,) the row that counts for each.

    sources, targets: (rows,) the ends of the given edges, each an entry of A
    columns: a value for each row
    undirected: A has the reverse of each row too
    """
    rows = torch.arange(len(sources))
    if undirected:
        loops = sources == targets
        rows = torch.cat([rows, rows[~loops]])
        sources, targets = (
            torch.cat([sources, targets[~loops]]),
            torch.cat([targets, sources[~loops]]),
        )
    keys = A.row_of_entry * A.columns + A.indices
    place = torch.searchsorted(keys, targets * A.columns + sources).numpy()
    order = np.lexsort((*_precedence(columns, rows)[::-1], place))
    first = np.flatnonzero(np.diff(place[order], prepend=-1))
    return rows[torch.from_numpy(order[first])]


def _precedence(columns: Columns, rows: Tensor) -> list[NDArray[Any]]:
    """What decides which of several rows comes first: time, then split."""
    dates = [each.values for each in columns.values() if each.kind == "date"][:1]
    splits = [each.values for each in columns.values() if each.kind == "split"][:1]
    keys = [dates_.nan_to_num(torch.inf) for dates_ in dates]
    keys += [torch.where(split < 0, 3, split) for split in splits]
    return [each[rows].numpy() for each in keys]


def aligned(
    A: CSR, sources: Tensor, targets: Tensor, columns: Columns, undirected: bool
) -> dict[str, Column]:
    """Columns of given edges, (rows,), as columns of the entries of A; see `row_of_entry`."""
    if not columns:
        return {}
    row = row_of_entry(A, sources, targets, columns, undirected)
    return {name: column.take(row) for name, column in columns.items()}


def read_columns(given: Mapping[str, Any], rows: int) -> dict[str, Column]:
    """Columns that Python gives, by name, each as long as there are rows."""
    return {name: column_of(name, values, rows) for name, values in given.items()}


def columns_of_table(
    A: CSR,
    edges: Tensor,
    of_edges: Mapping[str, Any],
    of_nodes: Mapping[str, Any],
    undirected: bool,
) -> Kept:
    """The kept columns of a graph of one table. edges: (2, rows) sources, then targets"""
    read = read_columns(of_edges, edges.shape[1])
    owned = {
        EDGES: aligned(A, edges[0], edges[1], read, undirected),
        NODES: read_columns(of_nodes, A.num_rows),
    }
    return {owner: columns for owner, columns in owned.items() if columns}


def column_of(name: str, given: Any, rows: int) -> Column:
    """A column of values that Python gives: numbers, datetime64, texts, or a `Column`.

    Texts that all are train, val or test are a split, other texts classes.
    """
    column = given if isinstance(given, Column) else _read(name, given)
    if len(column) != rows:
        raise InputError(f"column {name!r} has {len(column)} values for {rows} rows")
    if column.values.dim() != 1 or column.values.dtype != dtype_of(column.kind):
        raise InputError(
            f"column {name!r} of kind {column.kind} must be (rows,) {dtype_of(column.kind)}, not "
            f"{tuple(column.values.shape)} {column.values.dtype}"
        )
    if column.values.isinf().any():
        first = int(column.values.isinf().nonzero()[0, 0])
        raise InputError(f"column {name!r} is infinite, first in row {first}")
    most = {"class": len(column.classes), "split": 3}.get(column.kind)
    if most is not None and ((column.values < -1) | (column.values >= most)).any():
        raise InputError(f"column {name!r} of kind {column.kind} must be from -1 to {most - 1}")
    return column


def _read(name: str, given: Any) -> Column:
    array = given.cpu().numpy() if isinstance(given, Tensor) else np.asarray(given)
    if array.dtype.kind == "M":
        seconds = array.astype("datetime64[us]").astype(np.int64) / 1e6
        seconds[np.isnat(array)] = np.nan
        return Column("date", torch.from_numpy(seconds))
    if array.dtype.kind in "biuf":
        return Column("number", torch.from_numpy(array.astype(np.float64)))
    if array.dtype.kind not in "UO" or array.ndim != 1:
        raise InputError(f"column {name!r} holds {array.dtype}: give numbers, dates or texts")
    texts = ["" if _nothing(value) else str(value) for value in array.tolist()]
    words = {text.strip().lower() for text in texts if text}
    if words and words <= SPLIT_WORDS.keys():
        codes = [SPLIT_WORDS[text.strip().lower()] if text else -1 for text in texts]
        return Column("split", torch.tensor(codes))
    classes = tuple(sorted({text for text in texts if text}))
    place = {text: number for number, text in enumerate(classes)}
    return Column("class", torch.tensor([place.get(text, -1) for text in texts]), classes)


def _nothing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and isnan(value))
