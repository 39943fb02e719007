"""Node ids: all different, looked up by their text, stored as numbers if all are whole numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vrgcn.data.tables.problems import EXAMPLES, Problems
from vrgcn.data.tables.reading import Table
from vrgcn.data.tables.spec import Tidying
from vrgcn.data.tables.values import to_text
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.files.wording import counted

MOST_NODES = 2**31 - 1  # a pair of nodes and a direction then fit into 63 bits
CHECKED_ROWS = 1 << 20  # rows after which ids are first checked for repetitions
_STRING_BYTES = 2**31 - 1
_REPEATS = "repeats the id of an earlier row"
_DIFFERENCES: dict[Tidying, str] = {
    "space": "spaces around them",
    "decimal": "a .0 at the end",
    "case": "capital letters",
}


class NodeIds:
    """The ids of the nodes, in the order of the nodes.

    text: (nodes,) Arrow array of the texts by which ids are compared: tidied if the user asks for
        it
    own: (nodes,) the same ids as they are first written in the tables; None if equal to `text`
    """

    def __init__(self, text: pa.Array, own: pa.Array | None = None) -> None:
        self.text = text
        self.own = text if own is None else own

    def __len__(self) -> int:
        return len(self.text)

    def places(self, text: pa.Array | pa.ChunkedArray) -> NDArray[np.int64]:
        """Return the node of each id; -1 if no node has it.

        Each call builds a table of all ids anew, so look up many at once.
        """
        found = pc.index_in(pc.cast(text, self.text.type), value_set=self.text)
        return found.fill_null(-1).to_numpy().astype(np.int64)

    def chosen(self, places: pa.Array) -> NodeIds:
        """Return the ids at `places`, in that order."""
        own = None if self.own is self.text else self.own.take(places)
        return NodeIds(self.text.take(places), own)

    def with_more(self, others: NodeIds) -> NodeIds:
        """Return these ids followed by `others`."""
        same = self.own is self.text and others.own is others.text
        own = None if same else joined([self.own, others.own])
        return NodeIds(joined([self.text, others.text]), own)

    def natural(self) -> pa.Array:
        """Return the ids as the user wrote them, as int64 if all are whole numbers in their usual
        form, or else as text."""
        numbers = whole_numbers(self.own)
        return self.own if numbers is None else numbers


def whole_numbers(text: pa.Array) -> pa.Array | None:
    """Return texts as int64; None if a text, such as 007 or 1.0, is not the usual form of a whole
    number."""
    try:
        numbers = pc.cast(text, pa.int64())
    except pa.ArrowInvalid:
        return None
    return numbers if pc.cast(numbers, text.type).equals(text) else None


def tidied(text: pa.Array | pa.ChunkedArray, ways: Sequence[Tidying]) -> pa.Array:
    """Return the texts changed in the given ways: "space" removes spaces around them, "decimal" the
    .0 of whole numbers, "case" makes letters small."""
    if "space" in ways:
        text = pc.utf8_trim_whitespace(text)
    if "decimal" in ways:
        text = pc.replace_substring_regex(text, r"^([+-]?\d+)\.0+$", r"\1")
    if "case" in ways:
        text = pc.utf8_lower(text)
    return text


def look_alikes(ids: NodeIds, tidy: Sequence[Tidying]) -> str | None:
    """Return a warning about ids that differ only in spaces, a final .0 or capital letters; None if
    there are none.

    tidy: the differences that are ignored already
    """
    ways = tuple(_DIFFERENCES)
    plain = tidied(ids.text, ways)
    missing = len(plain) - pc.count_distinct(plain).as_py()
    if not missing:
        return None
    codes = plain.dictionary_encode().indices.to_numpy()
    first = _first_places(plain)
    again = np.ones(len(codes), bool)
    again[first] = False
    examples = [
        f"{ids.own[int(first[codes[row]])].as_py()!r} and {ids.own[int(row)].as_py()!r}"
        for row in np.flatnonzero(again)[:3]
    ]
    some = counted(missing, "id differs", "ids differ")
    needed = [way for way in ways if _merges(ids.text, way)] or list(ways)
    seen = " or ".join(_DIFFERENCES[way] for way in needed)
    return (
        f"{some} from another only in {seen}: {', '.join(examples)}"
        f"{', ...' if missing > 3 else ''}; they are different nodes, unless you give "
        f"{setting('tidy_ids', [*tidy, *needed])}"
    )


def _merges(text: pa.Array, way: Tidying) -> bool:
    return bool(pc.count_distinct(tidied(text, (way,))).as_py() < len(text))


def tidying_that_finds(unknown: pa.Array, ids: NodeIds) -> list[Tidying]:
    """Return the ways of tidying that would find some of the unknown ids; empty if none would."""
    found: list[Tidying] = [
        way
        for way in _DIFFERENCES
        if pc.any(pc.is_in(tidied(unknown, (way,)), tidied(ids.text, (way,)))).as_py()
    ]
    everything = tuple(_DIFFERENCES)
    if (
        not found
        and pc.any(pc.is_in(tidied(unknown, everything), tidied(ids.text, everything))).as_py()
    ):
        return list(everything)
    return found


def joined(parts: list[pa.Array]) -> pa.Array:
    """Join string arrays into one."""
    if sum(part.nbytes for part in parts) > _STRING_BYTES:
        parts = [part.cast(pa.large_string()) for part in parts]
    return pa.concat_arrays(parts) if parts else pa.array([], pa.string())


class IdReader:
    """Collects the id column of the nodes, and reports missing and repeated ids as problems."""

    def __init__(
        self, table: Table, column: str, tidy: Sequence[Tidying], problems: Problems
    ) -> None:
        self._table = table
        self._column = column
        self._tidy = tidy
        self._problems = problems
        self._own: list[pa.Array] = []
        self._next_check = CHECKED_ROWS

    def add(self, start: int, batch: pa.RecordBatch) -> None:
        own = to_text(batch.column(self._column))
        empty = np.flatnonzero(pc.equal(tidied(own, self._tidy), "").to_numpy(zero_copy_only=False))
        self._problems.add("is empty", self._column, empty + start, advice="every node needs an id")
        self._own.append(own)
        if start + len(own) >= self._next_check:
            self._check_mostly_different()
            self._next_check = 2 * (start + len(own))

    def finish(self) -> NodeIds:
        own = joined(self._own)
        self._own.clear()
        check_count(len(own))
        text = tidied(own, self._tidy)
        if pc.count_distinct(text).as_py() < len(text):
            rows = _repeated(text)
            self._problems.add(_REPEATS, self._column, rows, own.take(rows))
        return NodeIds(text, own if self._tidy else None)

    def _check_mostly_different(self) -> None:
        """Refuse to continue if more than half of the ids repeat others: a small file may hold
        hundreds of millions of them."""
        text = tidied(pa.chunked_array(self._own), self._tidy)
        if pc.count_distinct(text).as_py() >= len(text) / 2:
            return
        own = joined(self._own)
        rows = _repeated(tidied(own, self._tidy))
        told = Problems(self._table)
        advice = (
            f"read no further than row {len(own):,}; is this the column of ids? See {setting('id')}"
        )
        told.add(_REPEATS, self._column, rows, own.take(rows[:EXAMPLES]), advice)
        raise InputError("\n".join(told.lines()))


def _repeated(text: pa.Array) -> NDArray[np.int64]:
    """Return the rows whose text an earlier row has; empty texts do not count."""
    again = np.ones(len(text), bool)
    again[_first_places(text)] = False
    again &= ~pc.equal(text, "").to_numpy(zero_copy_only=False)
    return np.flatnonzero(again)


@dataclass(frozen=True)
class EndColumns:
    """The columns of an edge table that hold ids of one kind of nodes: one, or both ends."""

    table: Table
    columns: tuple[str, ...]


def ids_of_edges(
    ends: Sequence[EndColumns],
    tidy: Sequence[Tidying],
    on_rows: Callable[[str, int], None],
) -> NodeIds:
    """Return the ids that the edges name, sorted by number if all are whole numbers, or else by
    text.

    If an id has several spellings, the first is kept: table by table, row by row, the source
    before the target.
    """
    known = pa.array([], pa.string())  # all different once they are tidied
    fresh: list[pa.Array] = []
    for end in ends:
        width = len(end.columns)
        for start, batch in end.table.batches(list(end.columns)):
            text = pa.concat_arrays([to_text(batch.column(name)) for name in end.columns])
            if tidy:  # row by row, so that the first spelling does not depend on the batches
                text = text.take(pa.array(np.arange(len(text)).reshape(width, -1).T.ravel()))
            fresh.append(_distinct(text, tidy))
            if sum(map(len, fresh)) > max(1_000_000, len(known)):
                known, fresh = _distinct(joined([known, *fresh]), tidy), []
            on_rows(end.table.name, start + len(batch))
    own = _distinct(joined([known, *fresh]), tidy)
    ids = NodeIds(tidied(own, tidy), own if tidy else None)
    ids = ids.chosen(pc.indices_nonzero(pc.not_equal(ids.text, "")))
    check_count(len(ids))
    numbers = whole_numbers(ids.text)
    return ids.chosen(pc.array_sort_indices(ids.text if numbers is None else numbers))


def _distinct(text: pa.Array, tidy: Sequence[Tidying]) -> pa.Array:
    """Return one text, the first, of all texts that are equal once they are tidied."""
    return text.take(_first_places(tidied(text, tidy))) if tidy else pc.unique(text)


def _first_places(text: pa.Array) -> NDArray[np.int64]:
    """Return the place of the first occurrence of each different text, in ascending order."""
    codes = text.dictionary_encode().indices.to_numpy()
    return np.asarray(np.unique(codes, return_index=True)[1])


def check_count(nodes: int) -> None:
    if nodes > MOST_NODES:
        raise InputError(f"{nodes:,} nodes are more than {MOST_NODES:,}, the most there may be")
