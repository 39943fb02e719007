"""Features of rows that people give: by the recipe of the import, or as numbers.

A row is a plain value, `{"id": 7, "age": 31, "city": "Ulm"}`. The same encoders read it as read the
table that the graph was imported from, with the same errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from math import inf
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vrgcn.data.frames import ColumnTable, column_array
from vrgcn.data.tables.encoders.encoder import Encoder
from vrgcn.data.tables.features import FeatureColumns
from vrgcn.data.tables.problems import Problems
from vrgcn.data.tables.recipe import ImportRecipe
from vrgcn.live.changes import RefusedError, within

Row = Mapping[str, Any]
Numbers = NDArray[np.float64]
ID, FEATURES = "id", "features"

# Values of some feature columns of one node: (columns,) places and (columns,) numbers.
Part = tuple[NDArray[np.int64], Numbers]


class RowFeatures(Protocol):
    """What makes features of rows. Errors name a row by its place, and its column.

    id: the column of ids
    """

    id: str

    def encode(self, rows: Sequence[Row], names: Sequence[Any], what: str) -> Numbers:
        """(rows, width). names: what to call the rows in errors; what: the change they are of"""

    def encode_part(self, row: Row, name: Any, what: str) -> Part:
        """Only those features whose columns the row has, at least one."""

    def columns_of(self) -> dict[str, NDArray[np.int64]]:
        """The places of the features that each column makes."""


class NumberRows:
    """Rows that hold their features as numbers: in a list, `{"id": 7, "features": [0.5, 1]}`, or
    under the names of the feature columns where these have names."""

    id = ID

    def __init__(self, width: int, names: list[str] | None) -> None:
        self.width = width
        self.names = names
        self._place = {name: index for index, name in enumerate(names or ())}

    def encode(self, rows: Sequence[Row], names: Sequence[Any], what: str) -> Numbers:
        numbers = np.zeros((len(rows), self.width))
        for index, (row, name) in enumerate(zip(rows, names, strict=True)):
            if not self.width and FEATURES not in row:
                continue
            with within(index):
                columns, values = self.encode_part(row, name, what)
            if len(columns) < self.width:
                lacking = next(n for n in self._place if n not in row)
                raise RefusedError(
                    f"{what}: row {name!r} lacks {self.width - len(columns)} of the {self.width} "
                    f"feature columns, first: {lacking!r}",
                    *(index, lacking),
                )
            numbers[index, columns] = values
        return numbers

    def encode_part(self, row: Row, name: Any, what: str) -> Part:
        if FEATURES in row:
            values = row[FEATURES]
            if not isinstance(values, list | tuple) or len(values) != self.width:
                size = f"{len(values)}" if isinstance(values, list | tuple) else repr(values)
                raise RefusedError(
                    f"{what}: {FEATURES!r} of row {name!r} must be a list of {self.width} "
                    f"numbers, not {size}",
                    FEATURES,
                )
            keys: list[Any] = list(range(self.width))
            return np.arange(self.width), self._numbers(keys, values, name, what)
        keys = [key for key in row if key in self._place]
        if not keys:
            known = f", or of the columns {', '.join(self.names[:5])}, ..." if self.names else ""
            raise RefusedError(
                f"{what}: row {name!r} has no features: give {FEATURES!r}, a list of {self.width} "
                f"numbers{known}"
            )
        places = np.array([self._place[key] for key in keys], dtype=np.int64)
        return places, self._numbers(keys, [row[key] for key in keys], name, what)

    def columns_of(self) -> dict[str, NDArray[np.int64]]:
        names = self.names or [str(index) for index in range(self.width)]
        return {name: np.array([index]) for index, name in enumerate(names)}

    def _numbers(self, keys: list[Any], values: Sequence[Any], name: Any, what: str) -> Numbers:
        with suppress(ValueError, TypeError):  # most rows are right, and may be long
            array = np.asarray(values)
            if array.dtype.kind in "iufb" and array.ndim == 1 and np.isfinite(array).all():
                return array.astype(np.float64)
        numbers = np.empty(len(values))
        for index, (key, value) in enumerate(zip(keys, values, strict=True)):
            if isinstance(value, bool | int | float) and abs(value) < inf:
                numbers[index] = value
                continue
            raise RefusedError(
                f"{what}: feature {key!r} of row {name!r} must be a finite number, not {value!r}",
                *((key,) if isinstance(key, str) else (FEATURES, key)),
            )
        return numbers


class RecipeRows:
    """Rows like those of the table that the graph was imported from.

    width: of the features of the kind
    """

    def __init__(self, recipe: ImportRecipe, width: int) -> None:
        self.id = recipe.id or ID
        self.width = width
        self._recipe = recipe
        self._columns: dict[str, NDArray[np.int64]] = {}
        place = 0
        for encoder in sorted(recipe.encoders, key=lambda encoder: encoder.sparse):
            if encoder.sparse and recipe.marked:  # the mark is the last of the dense features
                place = max(place, self._dense)
            size = len(encoder.names)
            self._columns[encoder.column] = np.arange(place, place + size)
            place += size

    @property
    def _dense(self) -> int:
        own = sum(len(e.names) for e in self._recipe.encoders if not e.sparse)
        return own + self._recipe.marked

    def encode(self, rows: Sequence[Row], names: Sequence[Any], what: str) -> Numbers:
        encoders = self._recipe.encoders
        lacking = [e.column for e in encoders if all(e.column not in row for row in rows)]
        if lacking:
            shown = ", ".join(map(repr, lacking[:10])) + (", ..." if len(lacking) > 10 else "")
            raise RefusedError(
                f"{what}: the rows lack {len(lacking)} of the {len(encoders)} columns that the "
                f"features of the graph were made of: {shown}",
                *(0, lacking[0]),
            )
        features = np.zeros((len(rows), self.width))
        for encoder, values in self._encoded(encoders, rows, names, what):
            features[:, self._columns[encoder.column]] = values
        return features

    def encode_part(self, row: Row, name: Any, what: str) -> Part:
        known = {encoder.column: encoder for encoder in self._recipe.encoders}
        aside = {self.id, *self._recipe.label, self._recipe.split}
        for key in row:
            if key not in known and key not in aside:
                raise RefusedError(
                    f"{what}: row {name!r} has the column {key!r}, which no feature is made of; "
                    f"there are {', '.join(known)}",
                    key,
                )
        asked = [known[key] for key in row if key in known]
        if not asked:
            raise RefusedError(
                f"{what}: row {name!r} has no column that features are made of: {', '.join(known)}"
            )
        try:
            parts = self._encoded(asked, [row], [name], what)
        except RefusedError as error:
            error.path = error.path[1:]  # the only row has no place
            raise
        places = [self._columns[encoder.column] for encoder in asked]
        return np.concatenate(places), np.concatenate([values[0] for _, values in parts])

    def columns_of(self) -> dict[str, NDArray[np.int64]]:
        return dict(self._columns)

    def usual(self) -> Numbers:
        """Features of a node that the table lacks, as the import makes them: the mean of every
        dense feature and none of the sparse ones."""
        features = np.zeros(self.width)
        features[: self._dense] = self._recipe.mean[: self._dense]
        if self._recipe.marked:
            features[self._dense - 1] = 0  # the mark itself is no column
        return features

    def _encoded(
        self, encoders: Sequence[Encoder], rows: Sequence[Row], names: Sequence[Any], what: str
    ) -> list[tuple[Encoder, NDArray[np.float32]]]:
        columns = {e.column: _array([row.get(e.column) for row in rows]) for e in encoders}
        if not columns:
            return []
        table = ColumnTable(what, columns, names)
        unread = [e for e in encoders if not e.reads(table.kind(e.column))]
        if unread:
            raise RefusedError(
                "\n".join(
                    f"{what}: column {e.column!r} holds {table.kind(e.column)}, which cannot be "
                    f"read as {e.kind}, as the features of the graph were made of it"
                    for e in unread
                ),
                *(0, unread[0].column),
            )
        problems = Problems(table)
        encoded = []
        for encoder in encoders:
            [(start, batch)] = table.batches([encoder.column])
            one = FeatureColumns(table, [encoder], problems, marked=False)
            encoded.append((encoder, one.block(start, batch)))
        lines = problems.lines(advice=False)  # what an import could do differently does not help
        if lines:
            raise RefusedError("\n".join(lines), *problems.first)
        return encoded


def _array(values: list[Any]) -> pa.Array:
    array = column_array(values)
    return array.cast(pa.string()) if pa.types.is_null(array.type) else array
