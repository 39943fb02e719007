"""A table whose rows come from a database: read there once, kept in a temporary file.

An import reads a table several times. A query may give its rows in another order each time, or
other rows, and takes its time; so each batch goes to a file as it comes, and all later readings are
of the file. Rows come when they are asked for: mistakes that the first rows show are reported
before the others are fetched.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from vrgcn.data.databases.source import Rows, readable
from vrgcn.data.tables.cell_limits import cell_sizes
from vrgcn.data.tables.reading import (
    BATCH_BYTES,
    BATCH_ROWS,
    check_columns,
    tidy_names,
)
from vrgcn.data.tables.values import fixed_bytes
from vrgcn.files.mistakes import InputError
from vrgcn.files.writing import explained

_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")


class SpooledTable:
    """The rows of a database as the import reads tables, see `Table`.

    file: where the rows are kept; it must not exist, and is removed by the caller
    keys: columns that the database says are keys
    """

    def __init__(
        self, name: str, rows: Rows, file: Path, keys: frozenset[str] = frozenset()
    ) -> None:
        self.name = name
        self.keys = keys
        self.notes: list[str] = []
        self.header_doubt = ""
        self.columns = tidy_names(list(rows.schema.names), self.notes)
        check_columns(name, self.columns)
        fields = zip(self.columns, rows.schema, strict=True)
        self._schema = pa.schema([pa.field(name, plain(field.type)) for name, field in fields])
        self._rows: Iterator[pa.RecordBatch] | None = rows.batches
        self._file = file
        self._ends = [0]  # bytes of the file after each batch
        self._starts = [0]  # rows before each batch
        if not self._fetch():
            raise InputError(f"{name} has no rows")

    def kind(self, column: str) -> pa.DataType:
        return self._schema.field(column).type

    def batches(self, columns: Sequence[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
        place = 0
        while place + 1 < len(self._ends) or self._fetch():
            yield self._starts[place], self._read(place, list(columns))
            place += 1

    def where(self, rows: Sequence[int]) -> list[str]:
        return [f"row {row + 1:,}" for row in rows]

    def _fetch(self) -> bool:
        """Move the next rows from the database to the file; return False if there are none."""
        if self._rows is None:
            return False
        parts, count, size = [], 0, 0
        for given in self._rows:
            parts.append(self._checked(self._starts[-1] + count, given))
            count, size = count + len(given), size + given.nbytes
            if count >= BATCH_ROWS or size >= BATCH_BYTES:
                break
        else:
            self._rows = None
        if not count:
            return False
        with explained(self._file), open(self._file, "ab") as file:
            with pa.ipc.new_stream(file, self._schema, options=_OPTIONS) as writer:
                writer.write_table(pa.Table.from_batches(parts, self._schema).combine_chunks())
            self._ends.append(file.tell())
        self._starts.append(self._starts[-1] + count)
        return True

    def _checked(self, start: int, given: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch with the table's own types; raise if a text is damaged or too long."""
        arrays = [_plain(array) for array in given.columns]
        batch = pa.record_batch(arrays, schema=self._schema)
        try:
            batch.validate(full=True)
        except pa.ArrowException as error:
            raise InputError(f"{self.name}: {error}") from None
        for field, cells in zip(self._schema, arrays, strict=True):
            if readable(field.type) and fixed_bytes(field.type) is None:
                cell_sizes(self, start, field.name, cells)
        return batch

    def _read(self, place: int, columns: list[str]) -> pa.RecordBatch:
        fields = sorted(self.columns.index(column) for column in columns)
        options = pa.ipc.IpcReadOptions(included_fields=fields)
        start, end = self._ends[place], self._ends[place + 1]
        with pa.memory_map(str(self._file)) as file:
            file.seek(start)
            stream = pa.ipc.open_stream(file.read_buffer(end - start), options=options)
            [batch] = stream.read_all().combine_chunks().to_batches()
        return batch.select(columns)


def plain(kind: pa.DataType) -> pa.DataType:
    """Return the type that readers know in place of an extension, such as JSON's text."""
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def _plain(array: pa.Array) -> pa.Array:
    return array.storage if isinstance(array.type, pa.BaseExtensionType) else array
