"""The members of a source of tables, names and queries in SQL, and errors about tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import import_module
from types import ModuleType
from typing import Any, Protocol

import pyarrow as pa
from pyarrow import types

from vrgcn.data.databases import source_class
from vrgcn.data.databases.url import TableUrl
from vrgcn.data.tables.reading import first_line
from vrgcn.data.tables.values import is_list, is_number, is_text, is_time
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting

_QUERY = re.compile(r"(\s|\()*(select|with)[\s(*]", re.IGNORECASE)
# How databases say that a table of a query is not there.
_MISSING = re.compile(r"(?:no such table: |Table with name |relation \")([\w.]+)")
_PART = re.compile(r'"(?:[^"]|"")*"|[^".][^.]*')


@dataclass(frozen=True)
class Rows:
    """The rows of a table or query: the schema, and the batches, which are read once."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]


@dataclass(frozen=True)
class ForeignKey:
    """Columns of a table that name rows of another by its columns `keys`."""

    columns: tuple[str, ...]
    table: str
    keys: tuple[str, ...]


@dataclass(frozen=True)
class Keys:
    """The columns of a table and what the database says of them.

    columns: names and types, as the database spells them
    primary: columns of the primary key; empty if there is none
    needed: columns that are never empty
    """

    table: str
    columns: dict[str, str]
    primary: tuple[str, ...] = ()
    foreign: Sequence[ForeignKey] = ()
    needed: frozenset[str] = field(default_factory=frozenset)


def key_columns(tables: Sequence[Keys], what: str) -> frozenset[str]:
    """Return the columns of a table that are its key or name rows of another; of a query, all
    columns with the name of a key."""
    own = [each for each in tables if is_query(what) or each.table == name_parts(what)[-1]]
    primary = {each.primary[0] for each in own if len(each.primary) == 1}
    foreign = {column for each in own for key in each.foreign for column in key.columns}
    return frozenset(primary | foreign)


class TableSource(Protocol):
    """A database that was opened to be read, or to be written.

    Everything that one source reads is of one moment: tables that change meanwhile do not matter.
    A source of another package needs `rows` and `close`; the other members are for sources that
    propose an import and take predictions.
    """

    def __init__(self, url: TableUrl, *, write: bool = False) -> None:
        """Connect; raise if there is no such database.

        write: to write a table; otherwise nothing can be changed
        """

    def rows(self, what: str) -> Rows:
        """Return the rows of a table, or of a query; several may be read side by side."""

    def keys(self) -> list[Keys]:
        """Return all tables, by name, with their columns and keys."""

    def check_table(self, table: str, schema: pa.Schema | None, *, append: bool) -> None:
        """Raise if a table that should be new exists, or if one that should get more rows does not
        exist or lacks a column.

        schema: of the rows; None if it is not known yet
        """

    def write(self, table: str, rows: pa.RecordBatchReader, *, append: bool) -> None:
        """Write a table, or add rows to one, in one transaction: all rows or none."""

    def close(self) -> None:
        """Release the connection."""


def open_source(url: TableUrl, *, write: bool = False) -> TableSource:
    """Connect to the database of an address."""
    source: TableSource = source_class(url.scheme)(url, write=write)
    return source


def driver(module: str, package: str) -> ModuleType:
    """Import the driver of a database; raise if it is not installed."""
    try:
        return import_module(module)
    except ImportError:
        raise InputError(f"needs {package}: pip install 'vrgcn[db]'") from None


def is_query(what: str) -> bool:
    """True for a query, which begins with SELECT or WITH; False for the name of a table."""
    return _QUERY.match(what) is not None


def name_parts(table: str) -> list[str]:
    """Return the parts of a table's name: shop.users has two, "shop.users" in quotes is one."""
    parts = _PART.findall(table)
    if not parts or ".".join(parts) != table:
        raise InputError(f"{table!r} is no name of a table")
    return [
        part[1:-1].replace('""', '"') if part.startswith('"') and len(part) > 1 else part
        for part in parts
    ]


def quoted(name: str) -> str:
    """Return a name as SQL takes any name, in double quotes."""
    return '"' + name.replace('"', '""') + '"'


def quoted_table(table: str) -> str:
    """Return the name of a table, which may have that of its schema before it, in quotes."""
    return ".".join(quoted(part) for part in name_parts(table))


def query_of(what: str) -> str:
    """Return the query for a table or query, so that it can stand in parentheses."""
    return what.rstrip("; \t\r\n") if is_query(what) else f"SELECT * FROM {quoted_table(what)}"


def inside(query: str) -> str:
    """Return a query as a table of another; its last line may be a comment."""
    return f"(\n{query}\n) AS vrgcn_rows"


def readable(kind: pa.DataType) -> bool:
    """True for types that the readers of tables know: numbers, texts, times, bytes and lists of
    them."""
    if is_list(kind):
        return readable(kind.value_type)
    bytes_ = types.is_binary(kind) or types.is_large_binary(kind)
    time = is_time(kind) and not types.is_interval(kind)
    return is_number(kind) or is_text(kind) or time or bytes_


@contextmanager
def naming(
    name: str, errors: tuple[type[Exception], ...], tables: Callable[[], Sequence[str]] = list
) -> Iterator[None]:
    """Turn errors of a driver into errors that name the table or database and give its reason.

    tables: returns the names that a missing table is compared with
    """
    try:
        yield
    except errors as error:
        missing = _MISSING.search(reason(error))
        hint = did_you_mean(missing[1], tables()) if missing else ""
        raise InputError(f"{name}: {reason(error)}{hint}") from None


def did_you_mean(table: str, names: Sequence[str]) -> str:
    """Return a hint at the table of a similar name; "" if there is none."""
    plain = {name.casefold(): name for name in names}
    close = get_close_matches(table.rpartition(".")[2].casefold(), list(plain), n=1)
    return f"; did you mean {plain[close[0]]!r}?" if close else ""


def reason(error: BaseException) -> str:
    """Return what a driver says went wrong, without its own prefixes."""
    text = first_line(error)
    for pattern in (
        r"^[A-Z_]+: ",
        r"^\[(libpq|SQLite)\] ",
        r"^(Failed to (prepare|execute|step) query|Failed to connect|PQgetCopyData\(\) failed): ",
        r"^(ERROR|FATAL): +",
    ):
        text = re.sub(pattern, "", text)
    return text


def named_batches(
    name: str, batches: Iterable[pa.RecordBatch], errors: tuple[type[Exception], ...]
) -> Iterator[pa.RecordBatch]:
    """Yield the batches; an error names the table and how many rows came before it."""
    rows = 0
    try:
        for batch in batches:
            yield batch
            rows += len(batch)
    except (pa.ArrowException, OSError, *errors) as error:
        raise InputError(
            f"{name}: the rows after the first {rows:,} cannot be read: {reason(error)}"
        ) from None


_SHOWN = 20


def check_name(address: str, table: str, names: Sequence[str]) -> None:
    """Raise if a database has no such table, and name those that it has.

    table: as the user writes it; one with a schema before it is left to the database
    """
    parts = name_parts(table)
    if len(parts) > 1 or parts[0].casefold() in {name.casefold() for name in names}:
        return
    close = did_you_mean(parts[0], names)
    hint = f"{close} There" if close else "; there"
    shown = ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
    raise InputError(
        f"{address} has no table {table!r}{hint} are {shown}"
        if names
        else f"{address} has no tables"
    )


def no_table(address: str, table: str, append: bool, names: Sequence[str] = ()) -> InputError:
    """Return the error for a table to be written that exists already, or does not.

    names: of the tables that there are
    """
    if append:
        return InputError(
            f"{setting('append', True)}: {address} has no table {table!r} yet"
            f"{did_you_mean(table, names)}; without this flag it is made"
        )
    return InputError(
        f"{setting('out')}: {address} has a table {table!r} already; choose another name, or add "
        f"the rows to it with {setting('append', True)}"
    )


def check_columns_of(address: str, table: str, have: Sequence[str], wanted: Sequence[str]) -> None:
    """Raise if a table that gets more rows lacks one of their columns."""
    missing = [column for column in wanted if column not in have]
    if missing:
        raise InputError(
            f"{setting('append', True)}: {address}#{table} has no column "
            f"{', '.join(map(repr, missing[:5]))}; its columns are {', '.join(have[:_SHOWN])}"
        )


def write_rows(
    connection: Any,
    table: str,
    schema: str | None,
    rows: pa.RecordBatchReader,
    *,
    append: bool = False,
    then: str | None = None,
) -> None:
    """Write rows to a new table, or add them to one, and commit; undo everything on an error.

    connection: one that commits nothing by itself
    schema: the schema of the table; None for the usual one
    then: a statement before the commit; the table is then a temporary one
    """
    mode, temporary = "append" if append else "create", then is not None
    try:
        with connection.cursor() as cursor:
            cursor.adbc_ingest(table, rows, mode=mode, db_schema_name=schema, temporary=temporary)
            if then is not None:
                cursor.execute(then)
        connection.commit()
    except BaseException:
        with suppress(Exception):  # a connection that broke has nothing to undo
            connection.rollback()
        raise
