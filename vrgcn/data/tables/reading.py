"""A table on disk as a stream of batches of columns, whatever kind of file it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.parquet as pq

DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".txt": None}
HEADERLESS = {"--edges": "--headerless", "--nodes": "--headerless-nodes"}
BATCH_BYTES = 16 << 20
BATCH_ROWS = 65_536


class Table(Protocol):
    """A file of rows and named columns.

    name: of the file, for errors
    columns: their names, all different
    notes: how it is read, where that is not as the name's ending says
    header_doubt: advice for errors, where the names of the columns look like values; or ""
    """

    name: str
    columns: list[str]
    notes: list[str]
    header_doubt: str

    def kind(self, column: str) -> pa.DataType:
        """The type of a column; text for all columns of a text file."""

    def batches(self, columns: Sequence[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Some columns of all rows, batch after batch, each with the number of its first row."""

    def where(self, rows: Sequence[int]) -> list[str]:
        """How to tell a person about rows, numbered from 0: "row 3 (line 4)"."""


def open_table(path: Path, flag: str, delimiter: str | None, header: bool = True) -> Table:
    """The table in a file; its name's ending says what kind of file it is.

    flag: the option that named the file, for errors
    delimiter: None to take it from the file's first line
    """
    from vrgcn.data.tables.delimited import DelimitedTable

    if not path.is_file():
        raise FileNotFoundError(f"{flag}: there is no file {path}")
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is empty")
    suffixes = [suffix.lower() for suffix in path.suffixes]
    zipped = suffixes[-1:] == [".gz"]
    kind = "".join(suffixes[-2:-1] if zipped else suffixes[-1:])
    if kind in (".parquet", ".pq"):
        if zipped:
            raise ValueError(f"{path}: a Parquet file is compressed inside; gunzip it first")
        return ParquetTable(path)
    if delimiter is None and kind not in DELIMITERS:
        raise ValueError(
            f"{flag}: {path} ends in none of .csv, .tsv, .txt, the same with .gz, and .parquet; "
            "if it is text, give --delimiter"
        )
    usual = DELIMITERS.get(kind)
    return DelimitedTable(path, delimiter, zipped, header, usual, HEADERLESS[flag])


class ParquetTable:
    """A Parquet file; its columns come in their own types."""

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self.notes: list[str] = []
        self.header_doubt = ""
        try:
            self._file = pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20)
            self._schema = self._file.schema_arrow
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise ValueError(f"{path} is not a Parquet file: {first_line(error)}") from None
        given = list(self._schema.names)
        self.columns = tidy_names(given, self.notes)
        self._given = dict(zip(self.columns, given, strict=True))
        check_columns(self.name, self.columns)
        if self._file.metadata.num_rows == 0:
            raise ValueError(f"{path} has no rows")

    def kind(self, column: str) -> pa.DataType:
        return self._schema.field(self._given[column]).type

    def batches(self, columns: Sequence[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
        start = 0
        try:
            given = [self._given[column] for column in columns]
            for batch in self._file.iter_batches(self._batch_rows(), columns=given):
                # Arrow takes offsets and texts as the file has them; damaged ones lead anywhere.
                batch.validate(full=True)
                yield start, batch.select(given).rename_columns(list(columns))
                start += len(batch)
        except (pa.ArrowException, OSError) as error:
            raise ValueError(f"{self.name} cannot be read: {first_line(error)}") from None
        if given and start != self._file.metadata.num_rows:
            raise ValueError(
                f"{self.name} is damaged: it says that it has {self._file.metadata.num_rows:,} "
                f"rows, and has {start:,}"
            )

    def where(self, rows: Sequence[int]) -> list[str]:
        return [f"row {row + 1:,}" for row in rows]

    def _batch_rows(self) -> int:
        meta = self._file.metadata
        size = sum(meta.row_group(i).total_byte_size for i in range(meta.num_row_groups))
        return int(min(BATCH_ROWS, max(1, BATCH_BYTES * meta.num_rows // max(size, 1))))


def tidy_names(given: list[str], notes: list[str]) -> list[str]:
    """Names of columns without the spaces around them, which nobody sees; noted if there were."""
    names = [name.strip() for name in given]
    changed = [name for name, old in zip(names, given, strict=True) if name != old]
    if changed:
        shown = ", ".join(map(repr, changed[:5])) + (", ..." if len(changed) > 5 else "")
        notes.append(f"left out the spaces around the column names {shown}")
    return names


def check_columns(name: str, columns: list[str]) -> None:
    """Refuse a table with two columns of the same name."""
    if not columns:
        raise ValueError(f"{name} has no columns")
    [(column, count)] = Counter(columns).most_common(1)
    if count > 1:
        raise ValueError(f"{name} has more than one column called {column!r}; rename them")


def first_line(error: BaseException) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
