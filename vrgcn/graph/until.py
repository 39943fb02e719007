"""Cut-offs in time: which values of a column are not later than a moment that the user names.

"2026" stands for all of that year, "2026-06" for all of June, "2026-06-15" for all of that day,
"2026-06-15T12:30" for the minute; in UTC. A column of numbers has numbers for moments.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import isfinite

import torch
from torch import Tensor

from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import Placeholder, setting
from vrgcn.graph.graph import Graph
from vrgcn.graph.kept import NODES, Column, Columns

_MOMENT = re.compile(r"^(\d{4})(?:-(\d\d?)(?:-(\d\d?)(?:[T ](\d\d?)(?::(\d\d)(?::(\d\d))?)?)?)?)?$")
_LENGTHS = (timedelta(days=1), timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1))


@dataclass(frozen=True)
class Until:
    """A moment that the user named.

    name: of the setting, for errors
    """

    text: str
    name: str = "train_until"

    def __str__(self) -> str:
        return self.text

    def not_later(self, column: Column) -> Tensor:
        """(rows,) bool: whether a value is known and not later."""
        if column.kind == "number":
            return column.values <= self.number
        return column.values < self.end  # of NaN False

    @property
    def is_date(self) -> bool:
        """Whether the text is a date, and not a number for a column of numbers."""
        return _MOMENT.match(self.text.strip()) is not None

    @property
    def number(self) -> float:
        """The moment where times are numbers."""
        try:
            value = float(self.text)
        except ValueError:
            value = float("nan")
        if not isfinite(value):
            raise InputError(
                f"{setting(self.name, self.text)}: the column of times holds numbers; give a "
                f"number, or import the column as dates ({setting('keep', Placeholder('X=date'))})"
            )
        return value

    @property
    def end(self) -> float:
        """Seconds since 1970 at which the named year, month, day, hour, minute or second ends."""
        match = _MOMENT.match(self.text.strip())
        given = [int(part) for part in match.groups() if part is not None] if match else []
        try:
            return _end(given).timestamp()
        except (ValueError, IndexError, OverflowError):
            raise InputError(
                f"{setting(self.name, self.text)}: must be a date such as 2026, 2026-06, "
                "2026-06-15 or 2026-06-15T12:30"
            ) from None


def _end(given: list[int]) -> datetime:
    """The end of a period of which year, month, day, hour, minute and second are given."""
    if len(given) == 1:
        return datetime(given[0] + 1, 1, 1, tzinfo=UTC)
    if len(given) == 2:
        year, month = given
        datetime(year, month, 1, tzinfo=UTC)  # refuses a 13th month
        return datetime(year + month // 12, month % 12 + 1, 1, tzinfo=UTC)
    year, month, day, *rest = given
    hour, minute, second = [*rest, 0, 0, 0][:3]
    return datetime(year, month, day, hour, minute, second, tzinfo=UTC) + _LENGTHS[len(rest)]


def check_order(train: Until, val: Until | None, column: Column) -> None:
    """Refuse a validation that ends before the training does."""
    if val is None:
        return
    number = column.kind == "number"
    first, last = (u.number if number else u.end for u in (train, val))
    if last <= first:
        raise InputError(
            f"{setting(val.name, val.text)} must be later than {setting(train.name, train.text)}"
        )


def time_of(columns: Columns, owner: str, given: str | None, *, needed: bool) -> Column | None:
    """The column of times of a relation or a kind.

    given: its name; None for its only column of dates
    needed: refuse columns without any, or with several of which none is named; otherwise several
        dates of an edge are later than a moment if one is

    None if there is none.
    """
    if given is not None and given in columns:
        column = columns[given]
        if column.kind not in ("date", "number"):
            raise InputError(
                f"{setting('time_column', given)}: {owner}.{given} is a {column.kind}, no time"
            )
        return column
    dates = {name: column for name, column in columns.items() if column.kind == "date"}
    if needed and (given is not None or len(dates) != 1):
        have = ", ".join(f"{name} ({c.kind})" for name, c in columns.items()) or "no columns"
        want = Placeholder(f"{short(owner)}.COLUMN=date")
        name = Placeholder("COLUMN")
        raise InputError(
            f"{owner} has {'no' if given or not dates else 'several'} columns of dates to split "
            f"by: the graph keeps {have} of it; name one with {setting('time_column', name)}, or "
            f"import it with {setting('keep', want)}"
        )
    if not dates:
        return None
    values = torch.stack([column.values for column in dates.values()])
    return Column("date", values.amax(0))


def short(owner: str) -> str:
    """The name of a relation as the import's settings use it: bought for user-bought-item."""
    return owner.split("-", 1)[1].rpartition("-")[0] if owner.count("-") >= 2 else owner


def nodes_until(graph: Graph, until: Until, given: str | None) -> Tensor | None:
    """(nodes,) bool: whether a node is there at a moment, by the columns of times that kinds keep.
    Of several dates of a node the first counts; nodes without a date are there. None if no kind
    keeps a time."""
    known: Tensor | None = None
    for kind in graph.kinds.names:
        span, columns = graph.kinds.range(kind), graph.kept.get(kind or NODES, {})
        times = [column for column in columns.values() if column.kind == "date"]
        if given is not None and given in columns:
            times = [columns[given]]
        for column in times:
            there = until.not_later(column) | ~column.known
            known = torch.ones(graph.num_nodes, dtype=torch.bool) if known is None else known
            own = known[span.start : span.stop]
            own[:] = there if column is times[0] else own | there
    return known
