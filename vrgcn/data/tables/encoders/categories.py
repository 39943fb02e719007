"""Encode columns of categories, one or several in a cell: a feature of 0 and 1 for each
category."""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vrgcn.data.tables.encoders.cells import (
    cell_lists,
    describe_lists,
    reads_lists,
    told_delimiter,
)
from vrgcn.data.tables.encoders.encoder import (
    Arrays,
    Encoder,
    Look,
    Rejection,
    Tell,
    drop_advice,
    dropping,
)
from vrgcn.data.tables.encoders.sample import ColumnSample
from vrgcn.data.tables.values import is_nothing, is_number, is_text, is_time, to_text
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.files.wording import counted
from vrgcn.graph.validation import SPLIT_WORDS

NAMES = 0.9  # share of different cells above which they count as names
# More features than this, of which at most this share is not 0, are stored sparse: they take less
# memory and time so.
WIDE = 100
FILLED = 0.1


class CategoryColumn(Encoder):
    """Encodes a column of categories: a feature for each of the most frequent ones.

    All others share the feature `x=(other)`, if there are others; missing cells have `x=(missing)`,
    if there are some. In a later table, unseen categories count as others; without that feature
    they are all zeros, because a model learns nothing about a feature that no node had. Many
    features of which few are 1 are sparse: see WIDE.

    most: number of categories with a feature of their own
    delimiter: the text between several categories in a cell, see `cell_lists`
    """

    kind: ClassVar[str] = "category"
    option: ClassVar[str] = "how many categories at most"
    turn: ClassVar[int] = 70
    fitted = False
    unfilled: ClassVar[str] = "holds categories: its empty cells become the category (missing)"

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
        self._rows = self._unknown = 0

    @classmethod
    def allows(cls, option: str) -> bool:
        return option.isdecimal() and int(option) > 0

    @classmethod
    def reads(cls, kind: pa.DataType) -> bool:
        return is_time(kind) or super().reads(kind)

    @classmethod
    def recognise(cls, sample: ColumnSample) -> Look | Rejection:
        if not sample.is_text and not sample.holds_ids:
            return Rejection()
        most, cells = sample.most_categories, len(sample.cells) - sample.missing
        different = pc.count_distinct(sample.known).as_py()
        ids = f"ids, {different:,} different" if sample.holds_ids else ""
        if ids and (different == cells > 1 or (different > most and not sample.holds_codes)):
            advice = f"to keep it: {setting('column', f'{sample.column}=category')}"
            return Rejection(Look(ids, sample.missing, advice=advice), final=True)
        if (different == cells > 1) or (different > most and different > NAMES * cells):
            advice = f"to keep it: {setting('column', f'{sample.column}=text')}"
            words = "names, (almost) all different"
            return Rejection(Look(words, sample.missing, advice=advice))
        if sample.is_text and different <= len(SPLIT_WORDS) and _are_splits(sample):
            column = sample.column
            words = "train, validation and test nodes"
            advice = f"to split by it: {setting('split', column)}; to keep it: "
            kept = setting("column", f"{column}=category")
            return Rejection(Look(words, sample.missing, advice=advice + kept), final=True)
        words = ids or counted(different, "category", "categories")
        return Look(words, sample.missing, odd=sample.odd_codes, options={"most": most})

    @classmethod
    def told(cls, sample: ColumnSample, option: str, found: Look) -> Look:
        options = {"most": int(option or sample.most_categories)}
        return Look(found.words, found.missing, options=options)

    @property
    def names(self) -> list[str]:
        extra = ["(other)"] * self.other + ["(missing)"] * self.missing
        return [f"{self.column}={name}" for name in (*self.categories, *extra)]

    @property
    def _width(self) -> int:
        return len(self.categories) + self.other + self.missing

    def fit(self, cells: pa.Array) -> None:
        _, values, known, _ = self._values(cells)
        for pair in pc.value_counts(values).to_pylist():
            self._counts[pair["values"]] += pair["counts"]
        self._rows += len(known)
        self._unknown += int((~known).sum())

    def finish(self) -> None:
        if self.fitted:
            return
        ranked = sorted(self._counts, key=lambda name: (-self._counts[name], name))
        self.categories = sorted(ranked[: self.most])
        self.other = len(ranked) > self.most
        self.missing = self._unknown > 0
        ones = self._counts.total() + self._unknown
        self.sparse = self._width > WIDE and ones <= FILLED * self._width * self._rows
        self._counts.clear()
        if not self.names:
            raise InputError(
                f"column {self.column!r} holds no categories to make features of; leave it out "
                f"with {dropping(self.column)}"
            )
        self.fitted = True

    def encode(self, cells: pa.Array, out: NDArray[np.float32], tell: Tell) -> None:
        out[:] = 0
        out[self._ones(cells, tell)] = 1

    def ones(self, cells: pa.Array, tell: Tell) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        rows, places = self._ones(cells, tell)
        return np.divmod(np.unique(rows * self._width + places), self._width)

    def _ones(self, cells: pa.Array, tell: Tell) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the places of all categories: twice if a list has one twice."""
        rows, values, known, wrong = self._values(cells)
        if len(wrong):
            what = "is no list"
            advice = f"give {setting('column', f'{self.column}=category')}, or "
            tell(what, wrong, cells.take(pa.array(wrong)), advice + drop_advice(self.column))
        found = pc.index_in(values, pa.array(self.categories, pa.string())).fill_null(-1)
        place = found.to_numpy().astype(np.int64)
        if self.other:
            place[place < 0] = len(self.categories)
        else:
            for pair in pc.value_counts(values.filter(pa.array(place < 0))).to_pylist():
                self._unseen[pair["values"]] += pair["counts"]
        rows, place = rows[place >= 0], place[place >= 0]
        gaps = np.flatnonzero(~known)
        if self.missing:
            rows = np.append(rows, gaps)
            place = np.append(place, np.full(len(gaps), self._width - 1))
        else:
            self._gaps += len(gaps)
        return rows, place

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
            **({"sparse": True} if self.sparse else {}),
        }

    @classmethod
    def from_state(cls, column: str, state: dict[str, Any], arrays: Arrays) -> CategoryColumn:
        made = cls(column, len(state["categories"]), state["delimiter"])
        made.categories = list(state["categories"])
        made.other, made.missing, made.fitted = state["other"], state["missing"], True
        made.sparse = state.get("sparse", False)
        return made

    def _values(
        self, cells: pa.Array
    ) -> tuple[NDArray[np.int64], pa.Array, NDArray[np.bool_], NDArray[np.int64]]:
        """Return the row of each value, the values, a mask of the known rows, and the rows that are
        wrong."""
        text = pc.utf8_trim_whitespace(to_text(cells))
        known = ~is_nothing(text)
        return np.flatnonzero(known), text.filter(pa.array(known)), known, np.empty(0, np.int64)


def _are_splits(sample: ColumnSample) -> bool:
    """Return True if all cells name a split, and training nodes are among others, or the column is
    called a split: files may begin with the rows of one."""
    words = pc.utf8_lower(pc.unique(sample.known)).to_pylist()
    found = {SPLIT_WORDS.get(word) for word in words}
    several = 0 in found and len(found) > 1
    return None not in found and (several or "split" in sample.column.lower())


class CategoriesColumn(CategoryColumn):
    """Encodes a column with several categories in a cell."""

    kind: ClassVar[str] = "categories"
    option: ClassVar[str] = "what stands between two of them"
    turn: ClassVar[int] = 50
    unfilled: ClassVar[str] = (
        "holds lists of categories: its empty cells become the category (missing)"
    )

    @classmethod
    def allows(cls, option: str) -> bool:
        return True

    @classmethod
    def reads(cls, kind: pa.DataType) -> bool:
        return reads_lists(kind) or is_text(kind) or is_number(kind)

    @classmethod
    def recognise(cls, sample: ColumnSample) -> Look | Rejection:
        lists = sample.lists
        if lists is None:
            return Rejection()
        options = {"most": sample.most_listed, "delimiter": lists.delimiter}
        look = Look(lists.words, sample.gaps + lists.missing, options=options)
        return Rejection(look, final=True) if lists.empty else look

    @classmethod
    def told(cls, sample: ColumnSample, option: str, found: Look) -> Look:
        delimiter = told_delimiter(sample.cells, cls.kind, option, found.options.get("delimiter"))
        lists = describe_lists(sample.cells, delimiter, sample.spec.decimal)
        options = {"most": sample.most_listed, "delimiter": delimiter}
        return Look(lists.words, lists.missing, options=options)

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
