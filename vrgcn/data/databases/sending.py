"""Tables written to a database: all rows or none.

The rows are written to a temporary Parquet file first, and go to the database once all are there:
the transaction is as short as it can be, and whatever fails before it leaves the database alone.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from vrgcn.data.databases.source import is_query, open_source
from vrgcn.data.databases.url import Place, TableUrl
from vrgcn.data.tables.reading import BATCH_ROWS
from vrgcn.files.kinds import shown
from vrgcn.files.mistakes import InputError
from vrgcn.files.scratch import scratch_folder
from vrgcn.files.setting_names import setting


@contextmanager
def destination(out: Place, *, append: bool = False) -> Iterator[Path]:
    """Yield the path of a file to write; for the address of a table a temporary Parquet file, whose
    rows are in the table when the block has ended without an error.

    append: add the rows to a table that exists
    """
    if not isinstance(out, TableUrl):
        yield out
        return
    with scratch_folder(Path(tempfile.gettempdir())) as folder:
        path = folder / "rows.parquet"
        yield path
        send(path, out, append=append)


def check_destination(out: TableUrl, *, append: bool) -> None:
    """Raise if a table could not be written, before the work that leads to its rows."""
    if not out.what or is_query(out.what):
        raise InputError(f"{setting('out')}: {out} names no table; add #TABLE")
    with closing(open_source(out, write=True)) as source:
        source.check_table(out.what, None, append=append)


def _check_names(out: TableUrl, names: list[str]) -> None:
    """Raise if a database would take two columns for one, or end a column's name early."""
    by_lower: dict[str, str] = {}
    for name in names:
        same = name if out.scheme == "postgresql" else name.lower()
        if same in by_lower or "\0" in name:
            why = f"and {shown(by_lower[same])} are one name" if same in by_lower else "holds a NUL"
            raise InputError(
                f"{out.address}#{out.what}: to the database, the column {shown(name)} {why}: "
                f"write a .parquet or .csv file, or other names; {setting('top', 1)} of "
                "`vrgcn predict` needs no names of classes as columns"
            )
        by_lower[same] = name


def send(path: Path, out: TableUrl, *, append: bool) -> None:
    """Write the rows of a Parquet file to a table, in one transaction."""
    with pq.ParquetFile(path) as file, closing(open_source(out, write=True)) as source:
        schema = file.schema_arrow
        _check_names(out, schema.names)
        source.check_table(out.what, schema, append=append)
        rows = pa.RecordBatchReader.from_batches(schema, file.iter_batches(BATCH_ROWS))
        source.write(out.what, rows, append=append)
