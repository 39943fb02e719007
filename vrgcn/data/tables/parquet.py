"""Read Parquet files: columns in their own types, in batches of bounded size.

A small file may decode to very much data: a dictionary holds a long text once for all rows, equal
numbers are only counted, pages are compressed. So the number of rows that are read at once is found
before anything is decoded, from the file's own counts and the longest text of each dictionary.
Batches are measured and cut. A cell or a row group that takes too much is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from vrgcn.data.tables import cell_limits
from vrgcn.data.tables.cell_limits import cell_sizes, too_large
from vrgcn.data.tables.reading import (
    BATCH_BYTES,
    BATCH_ROWS,
    check_columns,
    first_line,
    tidy_names,
)
from vrgcn.data.tables.values import cell_bytes, fixed_bytes, is_list, is_text
from vrgcn.files.mistakes import InputError
from vrgcn.files.wording import bytes_text

SLICE_BYTES = 64 << 20  # size of a batch that `batches` yields
DECODED_BYTES = 128 << 20  # size of the rows that Arrow decodes at once
GROUP_BYTES = 512 << 20  # most for a row group over GROUP_TIMES its stored size
GROUP_TIMES = 100
_SEEN_ROWS = 1024  # rows that are decoded to read a dictionary
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 8, "FLOAT": 4, "DOUBLE": 8}


@dataclass(frozen=True)
class _Chunk:
    """A column in one row group, as the file describes it.

    path: the column's name for Arrow's `read_dictionary`
    shared: how its texts share bytes: "dictionary", "prefix" (with the text before), or "" if they
        do not
    repeated: a cell has several values
    width: bytes of a value; 0 for texts
    stored, unpacked: bytes in the file, and after decompression
    """

    group: int
    column: str
    path: str
    shared: str
    repeated: bool
    width: int
    values: int
    stored: int
    unpacked: int

    @property
    def taken(self) -> int:
        """Bytes that must fit into memory at once in the worst case, with dictionary texts counted
        once."""
        return max(self.unpacked, self.values * self.width * self.repeated)


class ParquetTable:
    """A Parquet file as a `Table`."""

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self.notes: list[str] = []
        self.header_doubt = ""
        self._path = path
        try:
            self._file = self._opened([])
            self._schema = self._file.schema_arrow
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise InputError(f"{path} is not a Parquet file: {first_line(error)}") from None
        given = list(self._schema.names)
        self.columns = tidy_names(given, self.notes)
        self._given = dict(zip(self.columns, given, strict=True))
        check_columns(self.name, self.columns)
        if self._file.metadata.num_rows == 0:
            raise InputError(f"{path} has no rows")
        self._longest: dict[_Chunk, int] = {}

    def kind(self, column: str) -> pa.DataType:
        return self._schema.field(self._given[column]).type

    def batches(self, columns: Sequence[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
        start = 0
        try:
            given = [self._given[column] for column in columns]
            wanted = set(given)
            chunks = [chunk for chunk in self._chunks if chunk.column in wanted]
            self._check_groups(chunks)
            rows = self._batch_rows(chunks)
            coded = [chunk.path for chunk in chunks if self._is_coded(chunk)]
            file = self._opened(coded) if coded else self._file
            for batch in file.iter_batches(rows, columns=given):
                # Arrow does not check the file's offsets and texts; damaged ones may point
                # anywhere.
                batch.validate(full=True)
                for part in self._parts(start, batch.select(given)):
                    yield start, part.rename_columns(list(columns))
                    start += len(part)
        except (pa.ArrowException, OSError) as error:
            raise InputError(f"{self.name} cannot be read: {first_line(error)}") from None
        if given and start != self._file.metadata.num_rows:
            raise InputError(
                f"{self.name} is damaged: it says that it has {self._file.metadata.num_rows:,} "
                f"rows, and has {start:,}"
            )

    def where(self, rows: Sequence[int]) -> list[str]:
        return [f"row {row + 1:,}" for row in rows]

    def _opened(self, coded: Sequence[str]) -> pq.ParquetFile:
        """Open the file.

        coded: paths of text columns to be read as dictionaries
        """
        metadata = self._file.metadata if coded else None  # read once: it is long for many columns
        return pq.ParquetFile(
            self._path,
            metadata=metadata,
            read_dictionary=list(coded),
            pre_buffer=False,
            buffer_size=1 << 20,
        )

    @cached_property
    def _chunks(self) -> list[_Chunk]:
        meta = self._file.metadata
        chunks = []
        for place in range(meta.num_columns):
            leaf = meta.schema.column(place)
            column = self._owner(leaf.path)
            kind = self._schema.field(column).type
            inner = kind.value_type if is_list(kind) else kind
            text = is_text(inner) and not pa.types.is_dictionary(inner)
            width = _WIDTHS.get(leaf.physical_type, leaf.length)
            for group in range(meta.num_row_groups):
                found = meta.row_group(group).column(place)
                chunks.append(
                    _Chunk(
                        *(group, column, leaf.path, _shared(found) if text else ""),
                        *(leaf.max_repetition_level > 0, width, found.num_values),
                        *(found.total_compressed_size, found.total_uncompressed_size),
                    )
                )
        return chunks

    def _owner(self, path: str) -> str:
        """Return the column that a path such as `tags.list.element` belongs to; names may hold dots
        too."""
        parts = path.split(".")
        names = (".".join(parts[:count]) for count in range(len(parts), 0, -1))
        return next(name for name in names if name in self._schema.names)

    def _check_groups(self, chunks: Sequence[_Chunk]) -> None:
        """Refuse a row group that takes much memory, both in bytes and in proportion to its stored
        size."""
        for group, rows in enumerate(self._group_rows):
            own = [chunk for chunk in chunks if chunk.group == group]
            taken = sum(chunk.taken for chunk in own)
            if taken <= max(GROUP_BYTES, GROUP_TIMES * sum(chunk.stored for chunk in own)):
                continue
            largest = max(own, key=lambda chunk: chunk.taken)
            first = sum(self._group_rows[:group])
            raise too_large(
                self,
                largest.column,
                f"is the largest of a row group that takes {bytes_text(taken)}, rows {first + 1:,} "
                f"to {first + rows:,}",
                GROUP_BYTES,
                "write the file in smaller row groups, or ",
            )

    @cached_property
    def _group_rows(self) -> list[int]:
        meta = self._file.metadata
        return [meta.row_group(group).num_rows for group in range(meta.num_row_groups)]

    def _batch_rows(self, chunks: Sequence[_Chunk]) -> int:
        """Return the number of rows to decode at once."""
        meta = self._file.metadata
        size = sum(meta.row_group(i).total_byte_size for i in range(meta.num_row_groups))
        a_row = np.zeros(meta.num_row_groups)  # bytes at most, or on average if cells are lists
        for chunk in chunks:
            if chunk.shared or chunk.repeated:
                values = chunk.values / max(self._group_rows[chunk.group], 1)
                a_row[chunk.group] += values * (chunk.width or self._longest_text(chunk))
        most = min(BATCH_ROWS, BATCH_BYTES * meta.num_rows // max(size, 1))
        return max(1, min(most, int(DECODED_BYTES / a_row.max(initial=1))))

    def _is_coded(self, chunk: _Chunk) -> bool:
        """Return True for lists of texts if a single list might take very much memory. Their texts
        stay in a dictionary until they are measured. Other texts are not read this way, because
        Arrow keeps the dictionary for a whole row group."""
        if not (chunk.repeated and chunk.shared == "dictionary"):
            return False
        return chunk.values * self._longest_text(chunk) > DECODED_BYTES

    def _longest_text(self, chunk: _Chunk) -> int:
        """Return the bytes of the longest text of a chunk whose texts share bytes; 0 for other
        chunks. Refuse a cell with too long a text."""
        if chunk not in self._longest:
            self._longest[chunk] = 0
            if chunk.shared == "dictionary":
                self._longest[chunk] = self._longest_in_dictionary(chunk)
            elif chunk.shared == "prefix":  # no text is longer than the unpacked chunk
                rows = max(1, DECODED_BYTES // max(chunk.unpacked, 1))
                self._longest[chunk] = self._longest_cell(chunk, self._file, rows)
        return self._longest[chunk]

    def _longest_in_dictionary(self, chunk: _Chunk) -> int:
        file = self._opened([chunk.path])
        longest = 0
        for _, cells in self._cells(chunk, file, _SEEN_ROWS):
            texts = (cells.values if is_list(cells.type) else cells).dictionary
            if len(texts):  # the dictionary is whole: it precedes the values
                longest = int(cell_bytes(texts).max())
                break
        if (
            longest > cell_limits.CELL_BYTES and not chunk.repeated
        ):  # find the row that has it, if any
            longest = self._longest_cell(chunk, file, BATCH_ROWS)
        return longest

    def _longest_cell(self, chunk: _Chunk, file: pq.ParquetFile, rows: int) -> int:
        parts = self._cells(chunk, file, rows)
        return max(
            int(cell_sizes(self, at, chunk.column, part).max(initial=0)) for at, part in parts
        )

    def _cells(
        self, chunk: _Chunk, file: pq.ParquetFile, rows: int
    ) -> Iterator[tuple[int, pa.Array]]:
        """Yield the cells of a chunk in parts, each with the number of its first row."""
        start = sum(self._group_rows[: chunk.group])
        for batch in file.iter_batches(rows, row_groups=[chunk.group], columns=[chunk.column]):
            batch.validate(full=True)
            yield start, batch.column(0)
            start += len(batch)

    def _parts(self, start: int, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a batch in parts of at most SLICE_BYTES, or of one row."""
        sizes = np.zeros(len(batch), np.int64)
        for field, cells in zip(batch.schema, batch.columns, strict=True):
            if fixed_bytes(field.type) is None:
                sizes += cell_sizes(self, start, field.name, cells)
        ends = np.cumsum(sizes)
        first = 0
        while first < len(batch):
            before = ends[first] - sizes[first]
            end = max(first + 1, int(np.searchsorted(ends, before + SLICE_BYTES, side="right")))
            yield self._decoded(batch.slice(first, end - first))
            first = end

    def _decoded(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the batch with every column in the type that the file's schema gives it."""
        wanted = pa.schema([self._schema.field(name) for name in batch.schema.names])
        if batch.schema.types == wanted.types:
            return batch
        # Copy first: a cast would also decode the cells outside the slice.
        return batch.take(pa.array(np.arange(len(batch)))).cast(wanted)


def _shared(chunk: pq.ColumnChunkMetaData) -> str:
    """Return the value of `_Chunk.shared` for a chunk."""
    if "DELTA_BYTE_ARRAY" in chunk.encodings:
        return "prefix"
    return "dictionary" if {"PLAIN_DICTIONARY", "RLE_DICTIONARY"} & set(chunk.encodings) else ""
