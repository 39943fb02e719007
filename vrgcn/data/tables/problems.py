"""Collect the errors of a table: counted by kind, the first few shown with column, row and
value."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vrgcn.data.tables.reading import Table
from vrgcn.files.mistakes import InputError
from vrgcn.files.wording import counted

EXAMPLES = 3  # rows shown for each problem of a column
COLUMNS = 8  # columns shown that have the same problem


@dataclass
class _Kind:
    count: int = 0
    rows: list[int] = field(default_factory=list)
    values: list[str] = field(default_factory=list)
    advice: str = ""


class Problems:
    """The problems of one table. Reading continues after a problem, so that all are reported at
    once."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._kinds: dict[str, dict[str, _Kind]] = {}

    def add(
        self,
        what: str,
        column: str,
        rows: NDArray[np.int64],
        values: pa.Array | None = None,
        advice: str = "",
    ) -> None:
        """Note that some rows of a column have a problem.

        what: continues "column 'x' ", such as "holds text where numbers should be"
        rows: row numbers, the first row below the header is 0
        values: the column's values in these rows
        """
        if not len(rows):
            return
        kind = self._kinds.setdefault(what, {}).setdefault(column, _Kind(advice=advice))
        kind.count += len(rows)
        space = EXAMPLES - len(kind.rows)
        kind.rows += [int(row) for row in rows[:space]]
        if values is not None:
            kind.values += [_shortened(value) for value in values[:space].to_pylist()]

    @property
    def first(self) -> tuple[int, str]:
        """Row and column of the first problem."""
        columns = next(iter(self._kinds.values()))
        column, kind = next(iter(columns.items()))
        return kind.rows[0], column

    def lines(self, *, advice: bool = True) -> list[str]:
        """Return a line for each problem of each column.

        advice: say what the import could do about it
        """
        lines: list[str] = []
        for what, columns in self._kinds.items():
            lines += [
                self._line(what, name, columns[name], advice) for name in list(columns)[:COLUMNS]
            ]
            if len(columns) > COLUMNS:
                more = len(columns) - COLUMNS
                lines.append(f"{self._table.name}: the same in {counted(more, 'more column')}")
        return lines

    def _line(self, what: str, column: str, kind: _Kind, advised: bool) -> str:
        places = self._table.where(kind.rows)
        if kind.values:
            places = [f"{v} in {p}" for v, p in zip(kind.values, places, strict=True)]
        rest = ", ..." if kind.count > len(places) else ""
        advice = f"; {kind.advice}" if kind.advice and advised else ""
        return (
            f"{self._table.name}: column {column!r} {what}, in {counted(kind.count, 'row')}: "
            f"{', '.join(places)}{rest}{advice}"
        )


class KnownError(InputError):
    """Raised where an error that was collected before leaves nothing to look at."""


class Collected:
    """Errors of several steps, raised together so that the user can correct all of them at once."""

    def __init__(self) -> None:
        self._errors: list[Exception] = []

    @contextmanager
    def step(self) -> Iterator[None]:
        """Collect an error raised inside the `with` block, so that the next step is still tried."""
        try:
            yield
        except KnownError:
            pass
        except (InputError, OSError) as error:
            self._errors.append(error)

    def add(self, problems: Problems) -> None:
        lines = problems.lines()
        if lines:
            self._errors.append(InputError("\n".join(lines)))

    def raise_if_any(self) -> None:
        if len(self._errors) == 1:
            raise self._errors[0]
        if self._errors:
            raise InputError("\n".join(dict.fromkeys(map(str, self._errors))))


def _shortened(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
