"""Columns of categories, one or several in a cell: a feature of 0 and 1 for each category."""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vrgcn.data.tables.encoders.cells import cell_lists
from vrgcn.data.tables.encoders.encoder import Arrays, Tell, drop_advice
from vrgcn.data.tables.values import is_nothing, to_text
from vrgcn.data.tables.wording import counted


class CategoryColumn:
    """The most frequent categories of a column, a feature for each.

    All others share the feature `x=(other)`, if there are others; missing cells have `x=(missing)`,
    if there are some. In another table, categories that were never seen are others too, or where
    there are none all zeros: a feature that no node had has learned nothing.

    most: categories with a feature of their own
    delimiter: what divides several in a cell, see `cell_lists`
    """

    kind: ClassVar[str] = "category"
    several: ClassVar[bool] = False

    def __init__(self, column: str, most: int, delimiter: str | None = None) -> None:
        self.column = column
        self.most = most
        self.delimiter = delimiter
        self.fitted = False
        self.categories: list[str] = []
        self.other = self.missing = False
        self._counts: Counter[str] = Counter()
        self._unseen: Counter[str] = Counter()
        self._gaps = 0

    @property
    def names(self) -> list[str]:
        extra = ["(other)"] * self.other + ["(missing)"] * self.missing
        return [f"{self.column}={name}" for name in (*self.categories, *extra)]

    def fit(self, cells: pa.Array) -> None:
        _, values, known, _ = self._values(cells)
        for pair in pc.value_counts(values).to_pylist():
            self._counts[pair["values"]] += pair["counts"]
        self.missing |= not known.all()

    def finish(self) -> None:
        if self.fitted:
            return
        ranked = sorted(self._counts, key=lambda name: (-self._counts[name], name))
        self.categories = sorted(ranked[: self.most])
        self.other = len(ranked) > self.most
        self._counts.clear()
        if not self.names:
            raise ValueError(
                f"column {self.column!r} holds no categories to make features of; leave it out "
                f"with --drop {self.column!r}"
            )
        self.fitted = True

    def encode(self, cells: pa.Array, out: NDArray[np.float32], tell: Tell) -> None:
        rows, values, known, wrong = self._values(cells)
        if len(wrong):
            what, advice = "is no list", f"give --column {self.column}=category, or "
            tell(what, wrong, cells.take(pa.array(wrong)), advice + drop_advice(self.column))
        out[:] = 0
        found = pc.index_in(values, pa.array(self.categories, pa.string())).fill_null(-1)
        place = found.to_numpy()
        out[rows[place >= 0], place[place >= 0]] = 1
        if self.other:
            out[rows[place < 0], len(self.categories)] = 1
        else:
            for pair in pc.value_counts(values.filter(pa.array(place < 0))).to_pylist():
                self._unseen[pair["values"]] += pair["counts"]
        if self.missing:
            out[~known, -1] = 1
        else:
            self._gaps += int((~known).sum())

    def plan(self) -> str:
        return f"a feature for each, {self.most:,} at most"

    def notes(self) -> list[str]:
        notes = []
        if self._unseen:
            cells = counted(sum(self._unseen.values()), "value")
            shown = ", ".join(repr(name) for name, _ in self._unseen.most_common(3))
            more = ", ..." if len(self._unseen) > 3 else ""
            notes.append(
                f"{cells} of categories that were not there before count as none: {shown}{more}"
            )
        if self._gaps:
            count = "counts" if self._gaps == 1 else "count"
            cells = counted(self._gaps, "missing value")
            notes.append(f"{cells}, of which there were none before, {count} as no category")
        return notes

    def state(self) -> dict[str, Any]:
        return {
            "categories": self.categories,
            "other": self.other,
            "missing": self.missing,
            "delimiter": self.delimiter,
        }

    def arrays(self) -> Arrays:
        return {}

    @classmethod
    def from_state(cls, column: str, state: dict[str, Any], arrays: Arrays) -> CategoryColumn:
        made = cls(column, len(state["categories"]), state["delimiter"])
        made.categories = list(state["categories"])
        made.other, made.missing, made.fitted = state["other"], state["missing"], True
        return made

    def _values(
        self, cells: pa.Array
    ) -> tuple[NDArray[np.int64], pa.Array, NDArray[np.bool_], NDArray[np.int64]]:
        """The row of each value, the values, which rows are known, and which are wrong."""
        text = pc.utf8_trim_whitespace(to_text(cells))
        known = ~is_nothing(text)
        return np.flatnonzero(known), text.filter(pa.array(known)), known, np.empty(0, np.int64)


class CategoriesColumn(CategoryColumn):
    """Several categories in a cell."""

    kind: ClassVar[str] = "categories"
    several: ClassVar[bool] = True

    def _values(
        self, cells: pa.Array
    ) -> tuple[NDArray[np.int64], pa.Array, NDArray[np.bool_], NDArray[np.int64]]:
        lists, wrong = cell_lists(cells, self.delimiter)
        known = lists.is_valid().to_numpy(zero_copy_only=False)
        lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy().astype(np.int64)
        values = pc.utf8_trim_whitespace(to_text(lists.flatten()))
        some = pc.not_equal(values, "")
        rows = np.repeat(np.arange(len(cells)), lengths)[some.to_numpy(zero_copy_only=False)]
        return rows, values.filter(some), known, wrong
