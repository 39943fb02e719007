"""A table of edges whose rows are nodes: the table with the number of each row as a column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from vrgcn.data.tables.reading import Table, keys_of

ROW = "(row)"  # the column of ids: the first row below the header is 1


class NumberedRows:
    """A table with the numbers of its rows as a further column; see `Table`."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self.name = table.name
        self.columns = [*table.columns, ROW]
        self.notes = table.notes
        self.header_doubt = table.header_doubt
        self.keys = keys_of(table)

    def kind(self, column: str) -> pa.DataType:
        return pa.int64() if column == ROW else self._table.kind(column)

    def batches(self, columns: Sequence[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
        own = [column for column in columns if column != ROW] or self._table.columns[:1]
        for start, batch in self._table.batches(own):
            numbers = pa.array(np.arange(start + 1, start + 1 + len(batch)))
            arrays = {name: batch.column(name) for name in own} | {ROW: numbers}
            yield start, pa.record_batch([arrays[name] for name in columns], names=list(columns))

    def where(self, rows: Sequence[int]) -> list[str]:
        return self._table.where(rows)
