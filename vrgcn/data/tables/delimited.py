"""CSV and TSV files, gzipped or not: every cell as text, and rows found again by their line."""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as arrow_csv

from vrgcn.data.tables.reading import check_columns, first_line

BLOCK = 4 << 20
WIDE_BLOCK = 32 << 20  # of a table with many columns, so that a block has many rows too
LINES = 5_000_000  # how far an error looks for the line of a row
LIKELY_DELIMITERS = ";\t|,"


class DelimitedTable:
    """A text file of cells. Quoted cells may hold delimiters, quotes (doubled) and newlines."""

    def __init__(self, path: Path, delimiter: str, zipped: bool, header: bool) -> None:
        self.name = str(path)
        self._path = path
        self._delimiter = delimiter
        self._zipped = zipped
        self._header = header
        first = self._first_record()
        self._check_delimiter(first)
        self.columns = first if header else [str(i + 1) for i in range(len(first))]
        check_columns(self.name, self.columns)
        if header and all(re.fullmatch(r"-?\d+(\.\d+)?", name) for name in first):
            raise ValueError(
                f"{path}: its first line should name the columns, and it is "
                f"{delimiter.join(first)!r}; add a header, or for edges give --headerless"
            )

    def kind(self, column: str) -> pa.DataType:
        return pa.string()

    def batches(self, columns: Sequence[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
        start = 0
        try:
            for batch in self._stream(columns, pa.string()):
                yield start, batch
                start += len(batch)
        except (pa.ArrowException, OSError) as error:
            raise self._explained(error, columns) from None
        if start == 0:
            raise ValueError(f"{self.name} has a header and no rows under it")

    def where(self, rows: Sequence[int]) -> list[str]:
        lines = self._lines(rows)
        return [f"row {row + 1:,}" + (f" (line {lines[row]:,})" * (row in lines)) for row in rows]

    def _stream(
        self, columns: Sequence[str], kind: pa.DataType, **parse: object
    ) -> Iterator[pa.RecordBatch]:
        block = max(BLOCK, min(WIDE_BLOCK, 256 * sum(map(len, self.columns))))
        with pa.input_stream(
            str(self._path), compression="gzip" if self._zipped else None
        ) as stream:
            try:
                reader = arrow_csv.open_csv(
                    stream,
                    arrow_csv.ReadOptions(
                        block_size=block,
                        column_names=None if self._header else self.columns,
                        use_threads=not parse,
                    ),
                    arrow_csv.ParseOptions(
                        delimiter=self._delimiter, newlines_in_values=True, **parse
                    ),
                    arrow_csv.ConvertOptions(
                        include_columns=list(columns), column_types=dict.fromkeys(columns, kind)
                    ),
                )
            except pa.ArrowInvalid as error:
                if "Empty CSV file" in str(error):  # a header without the newline after it
                    return
                raise
            yield from (batch for batch in reader if len(batch))

    @contextmanager
    def _records(self) -> Iterator[Any]:
        """A `csv.reader` over the file."""
        opened: Any = gzip.open if self._zipped else open
        with (
            opened(self._path, "rb") as raw,
            TextIOWrapper(raw, "utf-8-sig", errors="replace", newline="") as text,
        ):
            yield csv.reader(text, delimiter=self._delimiter)

    def _first_record(self) -> list[str]:
        try:
            with self._records() as records:
                first = next(filter(None, records), None)
        except (OSError, EOFError, csv.Error) as error:
            raise ValueError(f"{self.name} cannot be read: {first_line(error)}") from None
        if first is None:
            raise ValueError(f"{self.name} is empty")
        if any("\ufffd" in name or "\0" in name for name in first):
            raise ValueError(f"{self.name}: its first line is not UTF-8 text")
        return first

    def _check_delimiter(self, first: list[str]) -> None:
        if len(first) > 1:
            return
        found = max(LIKELY_DELIMITERS, key=first[0].count)
        if first[0].count(found):
            shown = "tab" if found == "\t" else found
            raise ValueError(
                f"{self.name}: its first line is one column, {first[0]!r}; "
                f"is the delimiter wrong? Give --delimiter '{shown}'"
            )

    def _lines(self, rows: Sequence[int]) -> dict[int, int]:
        """The line in the file where each row begins, as far as it can be told."""
        lines: dict[int, int] = {}
        try:
            with self._records() as reader:
                records = filter(None, reader)  # as Arrow, which passes over blank lines
                done = -int(self._header)
                for row in sorted(row for row in set(rows) if row < LINES):
                    next(islice(records, row - done, row - done), None)
                    line = reader.line_num
                    while next(reader) == []:
                        line = reader.line_num
                    lines[row], done = line + 1, row + 1
        except (OSError, EOFError, csv.Error, StopIteration):
            pass  # the row alone will do
        return lines

    def _explained(self, error: Exception, columns: Sequence[str]) -> ValueError:
        """What Arrow's error is about, with the rows that it does not tell."""
        text = first_line(error)
        try:
            if "UTF8" in text:
                return self._not_utf8(columns)
            if "Expected" in text and "columns" in text:
                return self._ragged(columns)
        except (pa.ArrowException, OSError):
            pass  # not to be explained further
        if "straddl" in text:
            return ValueError(
                f"{self.name} has a row of more than {BLOCK >> 20} MiB; is a quote never closed?"
            )
        return ValueError(f"{self.name} cannot be read: {text}")

    def _ragged(self, columns: Sequence[str]) -> ValueError:
        found: list[arrow_csv.InvalidRow] = []
        count = 0

        def note(row: arrow_csv.InvalidRow) -> str:
            nonlocal count
            count += 1
            if len(found) < 3:
                found.append(row)
            return "skip"

        for _ in self._stream(columns[:1], pa.binary(), invalid_row_handler=note):
            pass
        places = self.where([row.number - 1 - self._header for row in found])
        shown = ", ".join(
            f"{place} has {row.actual_columns}" for place, row in zip(places, found, strict=True)
        )
        rows = "1 row has" if count == 1 else f"{count:,} rows have"
        quote = any("\n" in row.text for row in found)
        hint = "is a quote never closed?" if quote else f"is {self._delimiter!r} the delimiter?"
        return ValueError(
            f"{self.name}: {rows} not {len(self.columns)} cells as the first line: {shown}"
            f"{', ...' if count > len(found) else ''}; {hint}"
        )

    def _not_utf8(self, columns: Sequence[str]) -> ValueError:
        start = 0
        for batch in self._stream(columns, pa.binary()):
            for name in columns:
                cells = batch.column(name)
                if not _is_utf8(cells):
                    [place] = self.where([start + _first_not_utf8(cells)])
                    return ValueError(
                        f"{self.name}: column {name!r} is not UTF-8 text, first in {place}; "
                        "convert the file, as with iconv -f latin1 -t utf8"
                    )
            start += len(batch)
        return ValueError(f"{self.name} is not UTF-8 text")


def _is_utf8(cells: pa.Array) -> bool:
    try:
        cells.cast(pa.string())
    except pa.ArrowInvalid:
        return False
    return True


def _first_not_utf8(cells: pa.Array) -> int:
    low, high = 0, len(cells)
    while high - low > 1:
        middle = (low + high) // 2
        if _is_utf8(cells[low:middle]):
            low = middle
        else:
            high = middle
    return low
