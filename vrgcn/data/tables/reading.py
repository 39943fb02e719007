"""Read a table on disk as a stream of batches of columns, whatever the kind of file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from vrgcn.data.databases.url import Place, TableUrl
from vrgcn.files.mistakes import InputError
from vrgcn.files.plugins import (
    TABLE_FILES,
    check_own,
    is_plugin,
    load_plugin,
    plugin_names,
)
from vrgcn.files.setting_names import setting

DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".txt": None}
HEADERLESS = {"edges": "headerless", "nodes": "headerless_nodes"}
BATCH_BYTES = 16 << 20
BATCH_ROWS = 65_536
# The ending of a file that is not text -> the name of its kind, the module and class of its table.
TABLES: dict[str, tuple[str, str, str]] = {
    ".parquet": ("Parquet", "vrgcn.data.tables.parquet", "ParquetTable"),
    ".pq": ("Parquet", "vrgcn.data.tables.parquet", "ParquetTable"),
    ".nt": ("N-Triples", "vrgcn.data.tables.rdf", "NTriplesTable"),
    ".ttl": ("Turtle", "vrgcn.data.tables.rdf", "TurtleTable"),
}

ZIPPED = (".nt",)  # those of them that are read with .gz, too


class Table(Protocol):
    """A file of rows and named columns.

    name: the name of the file, for errors
    columns: names of the columns, all different
    notes: remarks on how the file is read, if its ending alone does not say so
    header_doubt: advice for errors if the names of the columns look like values; or ""

    A table of a database also has `keys`, the columns that the database says are keys.
    """

    name: str
    columns: list[str]
    notes: list[str]
    header_doubt: str

    def kind(self, column: str) -> pa.DataType:
        """Return the type of a column; text for all columns of a text file."""

    def batches(self, columns: Sequence[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield the given columns of all rows in batches, each with the number of its first row."""

    def where(self, rows: Sequence[int]) -> list[str]:
        """Return words for rows, which are numbered from 0, such as "row 3 (line 4)"."""


def open_table(path: Path, name: str, delimiter: str | None, header: bool = True) -> Table:
    """Open the table in a file; the ending of its name gives the kind of file.

    name: the setting that names the file, for errors
    delimiter: None to find it in the file's first line
    """
    from vrgcn.data.tables.delimited import DelimitedTable

    if not path.is_file():
        raise FileNotFoundError(f"{setting(name)}: there is no file {path}")
    if path.stat().st_size == 0:
        raise InputError(f"{path} is empty")
    suffixes = [suffix.lower() for suffix in path.suffixes]
    zipped = suffixes[-1:] == [".gz"]
    kind = "".join(suffixes[-2:-1] if zipped else suffixes[-1:])
    found = table_kind(kind)
    if found is not None:
        title, table = found
        if zipped and kind not in ZIPPED:
            raise InputError(f"{path}: a {title} file cannot be read with .gz; gunzip it first")
        opened: Table = table(path)
        return opened
    if delimiter is None and kind not in DELIMITERS:
        raise InputError(
            f"{setting(name)}: {path} ends in none of .csv, .tsv, .txt, the same with .gz, and "
            f"{', '.join(_endings())}; if it is text, give {setting('delimiter')}"
        )
    usual = DELIMITERS.get(kind)
    return DelimitedTable(
        path, delimiter, zipped, header, usual, HEADERLESS.get(name, "headerless")
    )


def keys_of(table: Table) -> frozenset[str]:
    """Return the columns that a database says are keys; none for files."""
    found: frozenset[str] = getattr(table, "keys", frozenset())
    return found


def table_kind(ending: str) -> tuple[str, Callable[[Path], Table]] | None:
    """Return the name of a kind of file, and what opens it, by the ending of the file; None for
    text files and unknown endings. A plug-in of the group `vrgcn.table_files` that is called
    jsonl opens files that end in .jsonl; it may have a `title`."""
    if ending in TABLES or ending in DELIMITERS:
        check_own(TABLE_FILES, ending[1:])
    if ending in TABLES:
        title, module, name = TABLES[ending]
        return title, getattr(import_module(module), name)
    if ending in DELIMITERS or not is_plugin(TABLE_FILES, ending[1:]):
        return None
    opener = load_plugin(TABLE_FILES, ending[1:])
    return str(getattr(opener, "title", ending[1:])), opener


def check_headerless(path: Place, name: str) -> None:
    """Refuse to read a file as headerless if its kind always names the columns.

    name: the setting that says that the file is headerless
    """
    if isinstance(path, TableUrl):
        raise InputError(f"{setting(name)}: {path} names its columns; leave it out")
    found = table_kind(path.suffix.lower())
    if found is not None:
        title, _ = found
        raise InputError(
            f"{setting(name)}: {path} is a {title} file, which names its columns; leave it out"
        )


def _endings() -> list[str]:
    """Return the first ending of each kind of file that is not text."""
    first = {title: ending for ending, (title, *_) in reversed(TABLES.items())}
    ours = [ending for ending in TABLES if ending in first.values()]
    return [*ours, *(f".{name}" for name in plugin_names(TABLE_FILES))]


def tidy_names(given: list[str], notes: list[str]) -> list[str]:
    """Return the column names without the spaces around them; add a note if there were any."""
    names = [name.strip() for name in given]
    changed = [name for name, old in zip(names, given, strict=True) if name != old]
    if changed:
        shown = ", ".join(map(repr, changed[:5])) + (", ..." if len(changed) > 5 else "")
        notes.append(f"left out the spaces around the column names {shown}")
    return names


def check_columns(name: str, columns: list[str]) -> None:
    """Refuse a table without columns, or with two columns of the same name."""
    if not columns:
        raise InputError(f"{name} has no columns")
    [(column, count)] = Counter(columns).most_common(1)
    if count > 1:
        raise InputError(f"{name} has more than one column called {column!r}; rename them")


def first_line(error: BaseException) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
