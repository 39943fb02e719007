"""Edges: rows of a table to pairs of nodes, written to a temporary file as one number each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vrgcn.data.tables.adjacency import Pairs
from vrgcn.data.tables.columns import EdgeColumns
from vrgcn.data.tables.ids import NodeIds
from vrgcn.data.tables.problems import Problems
from vrgcn.data.tables.reading import Table
from vrgcn.data.tables.values import to_numbers, to_text

LOOKUP_ROWS = 2_000_000


def read_edges(
    table: Table,
    columns: EdgeColumns,
    ids: NodeIds,
    owner: str,
    folder: Path,
    on_rows: Callable[[str, int], None],
) -> Pairs:
    """All edges as pairs of nodes.

    owner: the file that the ids are from, for errors
    folder: for the temporary files
    """
    problems = Problems(table)
    pairs = Pairs(table.name, folder, len(ids), weighted=columns.weight is not None)
    ends = (columns.source, columns.target)
    with pairs, ThreadPoolExecutor(len(ends)) as pool:
        for start, batch in _large_batches(table, columns, len(ids)):
            texts = [_texts(batch.column(end)) for end in ends]
            source, target = pool.map(ids.places, texts)
            for end, text, places in zip(ends, texts, (source, target), strict=True):
                _check_places(end, start, text, places, owner, problems)
            weight = None
            if columns.weight is not None:
                weight = _weights(columns.weight, start, batch, problems)
            pairs.append(source, target, weight)
            on_rows(table.name, start + len(batch))
    problems.raise_if_any()
    return pairs


def _large_batches(
    table: Table, columns: EdgeColumns, nodes: int
) -> Iterator[tuple[int, pa.Table]]:
    """The table's batches put together: a look-up of ids takes time for every id each time."""
    parts: list[pa.RecordBatch] = []
    first = rows = 0
    for start, batch in table.batches(columns.used):
        if rows >= max(LOOKUP_ROWS, nodes):
            yield first, pa.Table.from_batches(parts)
            parts, first, rows = [], start, 0
        parts.append(batch)
        rows += len(batch)
    if parts:
        yield first, pa.Table.from_batches(parts)


def _texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pa.chunked_array([to_text(part) for part in column.chunks])


def _check_places(
    column: str,
    start: int,
    text: pa.ChunkedArray,
    places: NDArray[np.int64],
    owner: str,
    problems: Problems,
) -> None:
    unknown = np.flatnonzero(places < 0)
    cells = text.take(pa.array(unknown)).combine_chunks()
    empty = pc.equal(cells, "").to_numpy(zero_copy_only=False)
    problems.add("is empty", column, start + unknown[empty])
    what = f"names a node that {owner} does not have"
    problems.add(what, column, start + unknown[~empty], cells.filter(pa.array(~empty)))


def _weights(column: str, start: int, batch: pa.Table, problems: Problems) -> NDArray[np.float64]:
    cells = batch.column(column).combine_chunks()
    weights, text = to_numbers(cells, np.float64)
    problems.add("holds text where numbers should be", column, start + text, cells.take(text))
    with np.errstate(over="ignore"):
        finite = np.isfinite(weights.astype(np.float32))
    wrong = ~finite & ~np.isnan(weights)
    empty = np.isnan(weights)
    empty[text] = False
    problems.add("is missing or NaN", column, start + np.flatnonzero(empty))
    rows = np.flatnonzero(wrong)
    problems.add("is infinite, or too large for 32 bits", column, start + rows, cells.take(rows))
    return weights
