"""CSV and TSV files, gzipped or not: every cell is read as text, and errors name a row's line.

Lines at the top that start with # are comments. If the user gives no delimiter, it is found in the
first line below the comments.
"""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as arrow_csv

from vrgcn.data.tables.cell_limits import CELL_BYTES
from vrgcn.data.tables.reading import check_columns, first_line, tidy_names
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.files.wording import counted

BLOCK = CELL_BYTES
WIDE_BLOCK = 32 << 20  # for a table with many columns, so that a block holds many rows too
LINES = 5_000_000  # rows below this one are looked up for their line in an error
COMMENTS = 1_000_000  # comment lines and blank lines that are skipped at the top, at most
LIKELY_DELIMITERS = ",\t;|"
_UNREADABLE = (OSError, EOFError, zlib.error)  # a damaged gzip file may raise any of them
_QUOTED = re.compile(r'"[^"]*("|$)')
_NUMBER = re.compile(r"-?\d+(\.\d+)?")


class DelimitedTable:
    """A text file of cells. Quoted cells may hold delimiters, quotes (doubled) and newlines.

    delimiter: None to find it in the first line
    usual: the delimiter that belongs to the file's ending; None if there is none
    headerless: the setting that says that this file has no header, for errors
    """

    def __init__(
        self,
        path: Path,
        delimiter: str | None,
        zipped: bool,
        header: bool,
        usual: str | None = None,
        headerless: str = "headerless",
    ) -> None:
        self.name = str(path)
        self._path = path
        self._zipped = zipped
        self._header = header
        self._comment_bytes, self._comment_lines = self._comments()
        self._delimiter = delimiter or self._found_delimiter(usual)
        first = self._first_record()
        self._check_delimiter(first, delimiter is not None)
        self.notes: list[str] = []
        given = first if header else [str(i + 1) for i in range(len(first))]
        self.columns = tidy_names(given, self.notes)
        self._given = dict(zip(self.columns, given, strict=True))
        check_columns(self.name, self.columns)
        numbers = [name for name in first if _NUMBER.fullmatch(name)] if header else []
        if len(numbers) == len(first):
            raise InputError(
                f"{path}: its first line should name the columns, and it is "
                f"{self._delimiter.join(first)!r}; add a header, or say {setting(headerless, True)}"
            )
        self.header_doubt = (
            f"if the first line is not a header, say {setting(headerless, True)}" if numbers else ""
        )
        if self._comment_lines:
            lines = counted(self._comment_lines, "line")
            self.notes.append(f"passed over {lines} of comments at the top")
        if delimiter is None and len(first) > 1 and self._delimiter != usual:
            self.notes.append(f"cells divided by {_shown(self._delimiter)}")

    def kind(self, column: str) -> pa.DataType:
        return pa.string()

    def batches(self, columns: Sequence[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
        start, last = 0, self.columns[-1]
        end: str | bytes = ""  # the last cell of the last row
        beside = [] if last in columns else [last]
        try:
            for batch in self._stream(columns, pa.string(), beside):
                end = batch.column(last)[-1].as_py()
                yield start, batch.select(list(columns))
                start += len(batch)
            self._check_closed(end, start - 1)
        except (pa.ArrowException, OSError) as error:
            raise self._explained(error, columns) from None
        if start == 0:
            raise InputError(f"{self.name} has a header and no rows under it")

    def where(self, rows: Sequence[int]) -> list[str]:
        lines = self._lines(rows)
        told = {row: f" (line {line:,})" for row, line in lines.items()}
        return [f"row {row + 1:,}{told.get(row, '')}" for row in rows]

    def _stream(
        self,
        columns: Sequence[str],
        kind: pa.DataType,
        beside: Sequence[str] = (),
        **parse: object,
    ) -> Iterator[pa.RecordBatch]:
        """Yield batches of the columns, read as `kind`.

        beside: further columns, read as bytes
        parse: further options of Arrow's parser
        """
        given = [self._given[column] for column in columns]
        kinds = dict.fromkeys(given, kind)
        kinds |= {self._given[column]: pa.binary() for column in beside}
        block = max(BLOCK, min(WIDE_BLOCK, 256 * sum(map(len, self.columns))))
        with pa.input_stream(
            str(self._path), compression="gzip" if self._zipped else None
        ) as stream:
            stream.read(self._comment_bytes)
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
                    arrow_csv.ConvertOptions(include_columns=list(kinds), column_types=kinds),
                )
            except pa.ArrowInvalid as error:
                if "Empty CSV file" in str(error):  # a header without the newline after it
                    return
                raise
            names = [*columns, *beside]
            yield from (batch.rename_columns(names) for batch in reader if len(batch))

    def _check_closed(self, end: str | bytes, row: int) -> None:
        """Refuse a quote that is never closed. Arrow lets the end of the file close it, so that all
        rows below it become one cell, the last of the last row.

        end: the last cell of the last row
        row: the number of the last row
        """
        text = end if isinstance(end, bytes) else end.encode()
        if (b"\n" in text or b"\r" in text) and self._last_byte() != b'"':
            [place] = self.where([row])
            raise InputError(
                f"{self.name}: a quote in column {self.columns[-1]!r} is never closed, in {place}; "
                "all that follows would be one cell"
            )

    def _last_byte(self) -> bytes:
        """Return the last byte of the file that is not white space."""
        last = b""
        with self._opened() as raw:
            for block in iter(lambda: raw.read(BLOCK), b""):
                last = block.rstrip()[-1:] or last
        return last

    def _opened(self) -> Any:
        return gzip.open(self._path, "rb") if self._zipped else open(self._path, "rb")

    def _comments(self) -> tuple[int, int]:
        """Return the number of bytes and of lines at the top that are comments or blank lines among
        them."""
        comments = (0, 0)
        size = 0
        try:
            with self._opened() as raw:
                for lines, line in enumerate(iter(lambda: raw.readline(WIDE_BLOCK), b""), 1):
                    self._check_top(lines, line)
                    text = line.removeprefix(BOM_UTF8) if lines == 1 else line
                    size += len(line)
                    if text.startswith(b"#"):
                        comments = (size, lines)
                    elif text.strip(b"\r\n"):
                        break
        except _UNREADABLE as error:
            raise InputError(f"{self.name} cannot be read: {first_line(error)}") from None
        return comments

    def _check_top(self, lines: int, line: bytes) -> None:
        """Refuse too many lines, or too long a line, at the top: a few bytes of gzip may hold
        gigabytes."""
        if lines > COMMENTS:
            raise InputError(f"{self.name} begins with {COMMENTS:,} lines without a cell")
        if len(line) == WIDE_BLOCK and b"\n" not in line and b"\r" not in line:
            raise InputError(
                f"{self.name} has a line of more than {WIDE_BLOCK >> 20} MiB at its top; is it a "
                "table?"
            )

    @contextmanager
    def _records(self) -> Iterator[Any]:
        """Open a `csv.reader` over the lines below the comments."""
        with self._opened() as raw:
            raw.read(self._comment_bytes)
            with TextIOWrapper(raw, "utf-8-sig", errors="replace", newline="") as text:
                yield csv.reader(text, delimiter=self._delimiter)

    def _found_delimiter(self, usual: str | None) -> str:
        """Return the usual delimiter if it divides the first line, or else the only one that
        does."""
        with self._opened() as raw:
            raw.read(self._comment_bytes)
            lines = iter(lambda: raw.readline(WIDE_BLOCK), b"")
            line = next((line for line in lines if line.strip(b"\r\n")), b"")
        text = _QUOTED.sub("", line.removeprefix(BOM_UTF8).decode("utf-8", "replace"))
        found = [character for character in LIKELY_DELIMITERS if character in text]
        if usual in found or not found:
            return usual or ","
        if len(found) > 1:
            raise InputError(
                f"{self.name}: what divides the cells of its first line, "
                f"{' or '.join(map(_shown, found))}? Give {setting('delimiter')}"
            )
        return found[0]

    def _first_record(self) -> list[str]:
        try:
            with self._records() as records:
                first = next(filter(None, records), None)
        except (*_UNREADABLE, csv.Error) as error:
            raise InputError(f"{self.name} cannot be read: {first_line(error)}") from None
        if first is None:
            raise InputError(f"{self.name} is empty")
        if any("\ufffd" in name or "\0" in name for name in first):
            raise InputError(f"{self.name}: its first line is not UTF-8 text")
        return first

    def _check_delimiter(self, first: list[str], given: bool) -> None:
        if len(first) > 1:
            return
        found = max(LIKELY_DELIMITERS, key=first[0].count)
        if first[0].count(found):
            other = f", or leave {setting('delimiter')} out" if given else ""
            raise InputError(
                f"{self.name}: its first line is one column, {first[0]!r}; is the delimiter "
                f"wrong? Give {setting('delimiter', found, typed=_shown(found))}{other}"
            )

    def _lines(self, rows: Sequence[int]) -> dict[int, int]:
        """Return the line in the file where each row begins, for the rows whose line can be
        found."""
        lines: dict[int, int] = {}
        try:
            with self._records() as reader:
                records = filter(None, reader)  # Arrow skips blank lines too
                done = -int(self._header)
                for row in sorted(row for row in set(rows) if row < LINES):
                    next(islice(records, row - done, row - done), None)
                    line = reader.line_num
                    while next(reader) == []:
                        line = reader.line_num
                    lines[row], done = self._comment_lines + line + 1, row + 1
        except (*_UNREADABLE, csv.Error, StopIteration):
            pass  # the error then names the row alone
        return lines

    def _explained(self, error: Exception, columns: Sequence[str]) -> InputError:
        """Turn an error of Arrow into one that names the column and the rows where possible."""
        text = first_line(error)
        try:
            if "UTF8" in text:
                return self._not_utf8(columns)
            if "Expected" in text and "columns" in text:
                return self._ragged(columns)
        except (pa.ArrowException, OSError):
            pass  # the cause cannot be found; report Arrow's own message
        if "straddl" in text:
            return InputError(
                f"{self.name} has a row of more than {BLOCK >> 20} MiB; is a quote never closed?"
            )
        return InputError(f"{self.name} cannot be read: {text}")

    def _ragged(self, columns: Sequence[str]) -> InputError:
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
        rows = "1 row does" if count == 1 else f"{count:,} rows do"
        quote = any("\n" in row.text for row in found)
        hint = "is a quote never closed?" if quote else f"is {self._delimiter!r} the delimiter?"
        return InputError(
            f"{self.name}: {rows} not have {counted(len(self.columns), 'cell')} as the first "
            f"line does: {shown}"
            f"{', ...' if count > len(found) else ''}; {hint}"
        )

    def _not_utf8(self, columns: Sequence[str]) -> InputError:
        start = 0
        for batch in self._stream(columns, pa.binary()):
            for name in columns:
                cells = batch.column(name)
                if not _is_utf8(cells):
                    [place] = self.where([start + _first_not_utf8(cells)])
                    return InputError(
                        f"{self.name}: column {name!r} is not UTF-8 text, first in {place}; "
                        "convert the file, as with iconv -f latin1 -t utf8"
                    )
            start += len(batch)
        return InputError(f"{self.name} is not UTF-8 text")


def _shown(delimiter: str) -> str:
    return "'tab'" if delimiter == "\t" else repr(delimiter)


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
