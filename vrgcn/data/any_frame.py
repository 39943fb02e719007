"""Tables in memory of any library: pandas, polars, PyArrow, and others that give Arrow's stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from vrgcn.files.mistakes import InputError

_STREAM = "__arrow_c_stream__"  # Arrow's PyCapsule protocol


@dataclass(frozen=True)
class AnyFrame:
    """A table in memory.

    names, values: of the columns; values are a Series of pandas or an array of Arrow
    rows: what to call the rows in errors
    index: pandas' index if it says more than the number of a row; else None
    """

    names: list[str]
    values: list[Any]
    rows: Sequence[Any]
    index: Any = None

    def __len__(self) -> int:
        return len(self.rows)

    def column(self, name: str) -> Any:
        """Return the values of a column."""
        return self.values[self.names.index(name)]

    def listed(self, name: str) -> list[Any]:
        """Return the values of a column as Python's own."""
        values = self.column(name)
        listed: list[Any] = (
            values.to_pylist() if isinstance(values, pa.ChunkedArray) else values.tolist()
        )
        return listed

    def with_index(self, name: str) -> AnyFrame:
        """Return the table with the index, or else the numbers of the rows, as its first column."""
        ids = np.arange(len(self)) if self.index is None else self.index
        return replace(self, names=[name, *self.names], values=[ids, *self.values])


def is_frame(given: Any) -> bool:
    """Return True for a table in memory."""
    return _is_lazy(given) or _is_pandas(given) or hasattr(given, _STREAM)


def read_frame(name: str, given: Any) -> AnyFrame:
    """Read a table in memory.

    name: for errors
    """
    if isinstance(given, AnyFrame):
        return given
    if _is_lazy(given):
        raise InputError(f"{name} is a LazyFrame of polars, a query; give its rows: .collect()")
    if _is_pandas(given):
        names = [str(column) for column in given.columns]
        values = [given.iloc[:, place] for place in range(len(names))]
        index = None if _counts_rows(given.index) else given.index
        return AnyFrame(names, values, given.index, index)
    if not hasattr(given, _STREAM):
        raise TypeError(
            f"{name} must be a DataFrame (of pandas, polars or PyArrow), not {type(given).__name__}"
        )
    try:
        table = pa.table(given)
        schema = pa.schema([field.with_type(_without_views(field.type)) for field in table.schema])
        table = table.cast(schema)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise InputError(f"{name} is no table that Arrow can read: {error}") from None
    return AnyFrame(table.column_names, [*table.columns], range(len(table)))


def is_whole(values: Any) -> bool:
    """Return True for a column of whole numbers."""
    if isinstance(values, pa.ChunkedArray):
        return bool(pa.types.is_integer(values.type))
    return values.dtype.kind in "iu"


def like_given(table: pa.Table, library: str) -> Any:
    """Return a table in the library that `library_of` names."""
    if library == "pandas":
        return table.to_pandas()
    if library == "polars":
        import polars

        return polars.from_arrow(table)
    return table


def library_of(given: Any) -> str:
    """Return the name of the library of a table: "pandas", "polars" or "pyarrow", also for all
    others that are no DataFrame of these."""
    own = type(given).__module__.partition(".")[0]
    return own if own in ("pandas", "polars") else "pyarrow"


def _without_views(kind: pa.DataType) -> pa.DataType:
    """Return a type with ordinary texts in place of Arrow's views of texts, which few functions
    take."""
    if pa.types.is_string_view(kind):
        return pa.large_string()
    if pa.types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, _without_views(kind.value_type), kind.ordered)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.large_list(_without_views(kind.value_type))
    return kind


def _is_lazy(given: Any) -> bool:
    return library_of(given) == "polars" and type(given).__name__ == "LazyFrame"


def _is_pandas(given: Any) -> bool:
    return hasattr(given, "columns") and hasattr(given, "index") and hasattr(given, "iloc")


def _counts_rows(index: Any) -> bool:
    """Return True if an index is that of a DataFrame without one: 0, 1, 2, ..."""
    plain = index.nlevels == 1 and index.name is None and index.dtype.kind == "i"
    return plain and bool((index.to_numpy() == np.arange(len(index))).all())
