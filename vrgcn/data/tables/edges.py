"""Read the rows of an edge table as pairs of nodes, each written to a temporary file as a
number."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vrgcn.data.tables.adjacency import Pairs
from vrgcn.data.tables.columns import EdgeColumns
from vrgcn.data.tables.encoders.numbers import sure_decimal
from vrgcn.data.tables.ids import NodeIds, tidied, tidying_that_finds
from vrgcn.data.tables.problems import Problems
from vrgcn.data.tables.proposal import SAMPLE
from vrgcn.data.tables.reading import Table
from vrgcn.data.tables.spec import ImportSpec, Tidying
from vrgcn.data.tables.values import cell_bytes, comma_advice, is_text, to_numbers, to_text
from vrgcn.data.tables.wording import counted
from vrgcn.files.setting_names import setting

LOOKUP_ROWS = 2_000_000
LOOKUP_BYTES = 512 << 20
TRIED = 100_000  # unknown ids that are tried in other spellings


def read_edges(
    table: Table,
    columns: EdgeColumns,
    ids: NodeIds,
    owner: str,
    spec: ImportSpec,
    folder: Path,
    on_rows: Callable[[str, int], None],
) -> tuple[Pairs, Problems]:
    """Read all edges as pairs of nodes; return them and the problems of the table.

    owner: the file that the ids come from, for errors
    folder: for the temporary files
    """
    pairs = Pairs(table.name, folder, len(ids), weighted=columns.weight is not None)
    ends = _Ends(table, ids, owner, spec.unknown_nodes == "skip", spec.tidy_ids)
    names = (columns.source, columns.target)
    decimal = spec.decimal
    with pairs, ThreadPoolExecutor(len(names)) as pool:
        for start, batch in _large_batches(table, columns, ids):
            texts = [_texts(batch.column(name)) for name in names]
            source, target = pool.map(lambda text: ids.places(tidied(text, spec.tidy_ids)), texts)
            for name, text, places in zip(names, texts, (source, target), strict=True):
                ends.check(name, start, text, places)
            weight = None
            if columns.weight is not None:
                if start == 0 and decimal is None:
                    decimal = _seen_decimal(table, columns.weight, batch)
                weight = _weights(columns.weight, start, batch, decimal, ends.problems)
            pairs.append(source, target, weight)
            on_rows(table.name, start + len(batch))
    pairs.notes += ends.skipped(pairs)
    return pairs, ends.problems


class _Ends:
    """Notes the ends of edges that are no known node, as problems or as edges to be skipped."""

    def __init__(
        self, table: Table, ids: NodeIds, owner: str, skip: bool, tidy: Sequence[Tidying]
    ) -> None:
        self.problems = Problems(table)
        self._tidy = tidy
        self._table = table
        self._ids = ids
        self._owner = owner
        self._skip = skip
        self._skipped = Problems(table)
        self._advice: dict[str, str] = {}

    def check(
        self, column: str, start: int, text: pa.ChunkedArray, places: NDArray[np.int64]
    ) -> None:
        unknown = np.flatnonzero(places < 0)
        if not len(unknown):
            return
        cells = text.take(pa.array(unknown)).combine_chunks()
        empty = pc.equal(tidied(cells, self._tidy), "").to_numpy(zero_copy_only=False)
        named = cells.filter(pa.array(~empty))
        home = self._skipped if self._skip else self.problems
        advice = (
            "" if self._skip else f"leave such edges out with {setting('unknown_nodes', 'skip')}"
        )
        home.add("is empty", column, start + unknown[empty], advice=advice)
        if len(named) and column not in self._advice:
            self._advice[column] = self._how_to_find(named)
        what = f"names a node that {self._owner} does not have"
        home.add(what, column, start + unknown[~empty], named, self._advice.get(column, ""))

    def skipped(self, pairs: Pairs) -> list[str]:
        """Return the lines that report skipped edges; refuse to skip all of them."""
        if not self._skip or not pairs.skipped:
            return []
        whole = pairs.rows + pairs.skipped
        if not pairs.rows:
            lines = "\n".join(self._skipped.lines())
            raise ValueError(
                f"{setting('unknown_nodes', 'skip')}: leaves none of the {whole:,} rows of "
                f"{self._table.name}; are the columns right?\n{lines}"
            )
        share = f"{pairs.skipped / whole:.1%}"
        rows = counted(whole, "row")
        skipped = f"{self._table.name}: skipped {pairs.skipped:,} of {rows} ({share})"
        return [skipped, *self._skipped.lines()]

    def _how_to_find(self, named: pa.Array) -> str:
        ways = tidying_that_finds(tidied(named[:TRIED], self._tidy), self._ids)
        advice = []
        if ways:
            tidy = setting("tidy_ids", [*self._tidy, *ways])
            advice.append(f"in another spelling it has some: give {tidy}")
        if not self._skip:
            advice.append(
                f"leave such edges out with {setting('unknown_nodes', 'skip')}, or make nodes of "
                f"them with {setting('unknown_nodes', 'add')}"
            )
        return "; ".join(advice)


def _large_batches(
    table: Table, columns: EdgeColumns, ids: NodeIds
) -> Iterator[tuple[int, pa.Table]]:
    """Join the table's batches into larger ones: each look-up builds a table of all node ids
    anew."""
    parts: list[pa.RecordBatch] = []
    first = rows = size = 0
    most = (max(LOOKUP_ROWS, len(ids)), max(LOOKUP_BYTES, 4 * ids.text.nbytes))
    for start, batch in table.batches(columns.used):
        if rows >= most[0] or size >= most[1]:
            yield first, pa.Table.from_batches(parts)
            parts, first, rows, size = [], start, 0, 0
        parts.append(batch)
        rows += len(batch)
        size += sum(int(cell_bytes(cells).sum()) for cells in batch.columns)
    if parts:
        yield first, pa.Table.from_batches(parts)


def _texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pa.chunked_array([to_text(part) for part in column.chunks])


def _seen_decimal(table: Table, column: str, batch: pa.Table) -> str | None:
    """Return the decimal comma or point of the weights if the first rows leave no doubt about it.
    Report a comma in the table's notes."""
    cells = batch.column(column)[:SAMPLE].combine_chunks()
    decimal = sure_decimal(to_text(cells)) if is_text(cells.type) else None
    if decimal == ",":
        table.notes.append(f"decimal commas of column {column!r} read as points")
    return decimal


def _weights(
    column: str, start: int, batch: pa.Table, decimal: str | None, problems: Problems
) -> NDArray[np.float64]:
    cells = batch.column(column).combine_chunks()
    weights, text = to_numbers(cells, np.float64, decimal=decimal)
    what = "holds text where numbers should be"
    advice = comma_advice(cells, text).removeprefix("; ")
    problems.add(what, column, start + text, cells.take(text), advice)
    with np.errstate(over="ignore"):
        finite = np.isfinite(weights.astype(np.float32))
    wrong = ~finite & ~np.isnan(weights)
    empty = np.isnan(weights)
    empty[text] = False
    problems.add("is missing or NaN", column, start + np.flatnonzero(empty))
    rows = np.flatnonzero(wrong)
    problems.add("is infinite, or too large for 32 bits", column, start + rows, cells.take(rows))
    rows = _lost(weights, cells)
    advice = "multiply all weights by one number, or write 0"
    what = "is too close to 0 for 32 bits"
    problems.add(what, column, start + rows, cells.take(rows), advice)
    return weights


def _lost(weights: NDArray[np.float64], cells: pa.Array) -> NDArray[np.int64]:
    """Return the places of weights that are not 0 but would count as 0: products in 32 bits treat
    numbers below the smallest normal one as 0."""
    lost = (np.abs(weights) < np.finfo(np.float32).tiny) & (weights != 0)
    if is_text(cells.type):  # a number too small even for 64 bits was read as 0
        zero = np.flatnonzero(weights == 0)
        digits = pc.match_substring_regex(to_text(cells.take(zero)), "^[^eE]*[1-9]")
        lost[zero] = pc.fill_null(digits, False).to_numpy(zero_copy_only=False)
    return np.flatnonzero(lost)
