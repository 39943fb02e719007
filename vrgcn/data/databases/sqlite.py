"""Tables of SQLite files.

A column of SQLite may hold numbers in some rows and texts in others, whatever its declared type
is, and the driver takes the type of a column from its first rows. So all rows are looked at first:
a column with a text is a column of texts, one with a fraction a column of floating point. The
first row that the driver gets has a value of this type in each column, and is left out again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from vrgcn.data.databases.source import (
    ForeignKey,
    Keys,
    Rows,
    check_columns_of,
    check_name,
    driver,
    inside,
    is_query,
    name_parts,
    named_batches,
    naming,
    no_table,
    query_of,
    quoted,
    write_rows,
)
from vrgcn.data.databases.url import TableUrl
from vrgcn.data.tables.reading import BATCH_BYTES, BATCH_ROWS
from vrgcn.files.mistakes import InputError

_BATCH_ROWS = "adbc.sqlite.query.batch_rows"
_PATIENCE = 10_000  # milliseconds to wait for others that have locked the file
_LOOKED_AT = 400  # columns at once: a row of SQLite has 2,000 at most


class Sqlite:
    """A file of SQLite; see `TableSource`."""

    def __init__(self, url: TableUrl, *, write: bool = False) -> None:
        self._address = url.address
        with naming(url.address, (ValueError,)):
            driver("adbc_driver_sqlite", "adbc-driver-sqlite")
            dbapi = driver("adbc_driver_sqlite.dbapi", "adbc-driver-manager")
        self._path = url.file
        self._new = write and not self._path.exists()
        if not write and not self._path.is_file():
            raise FileNotFoundError(f"{url.address}: there is no file {self._path}")
        self._errors = (dbapi.Error, OSError)
        uri = f"file:{quote(str(self._path.absolute()))}?mode={'rwc' if write else 'ro'}"
        with naming(url.address, self._errors), ExitStack() as opened:
            self._connection = dbapi.connect(uri)
            opened.callback(self._connection.close)
            with self._connection.cursor() as cursor:
                cursor.execute(f"PRAGMA busy_timeout = {_PATIENCE}")
            self._names()  # a file that is no database is noticed when it is read
            # The connection, and after it the cursors whose rows are read.
            self._opened = opened.pop_all()

    def rows(self, what: str) -> Rows:
        name = f"{self._address}#{' '.join(what.split())}"
        query = query_of(what)
        if not is_query(what):
            check_name(self._address, what, self._names())
        with naming(name, self._errors, self._names):
            columns = self._schema(query).names
            kinds, most = self._looked_at(query, columns)
            rows = max(1, min(BATCH_ROWS, BATCH_BYTES // max(most, 1)))
            cursor = self._connection.cursor(adbc_stmt_kwargs={_BATCH_ROWS: str(rows)})
            self._opened.callback(cursor.close)
            cursor.execute(_typed(query, columns, kinds))
            reader = cursor.fetch_record_batch()
        batches = named_batches(name, _without_first(reader), self._errors)
        return Rows(reader.schema, batches)

    def keys(self) -> list[Keys]:
        with naming(self._address, self._errors):
            return [self._keys(name) for name in self._names(("table",))]

    def check_table(self, table: str, schema: pa.Schema | None, *, append: bool) -> None:
        [name] = _own(table)
        names = {each.casefold() for each in self._names()}
        if (name.casefold() in names) != append:
            raise no_table(self._address, table, append, self._names())
        if append and schema is not None:
            have = self._schema(f"SELECT * FROM {quoted(name)}").names
            check_columns_of(self._address, table, have, schema.names)

    def write(self, table: str, rows: pa.RecordBatchReader, *, append: bool) -> None:
        [name] = _own(table)
        with naming(f"{self._address}#{table}", self._errors):
            write_rows(self._connection, name, None, rows, append=append)
            self._new = False

    def close(self) -> None:
        with suppress(*self._errors):
            self._opened.close()
        if self._new:  # nothing was written
            self._path.unlink(missing_ok=True)

    def _fetched(self, query: str) -> list[tuple[Any, ...]]:
        with self._connection.cursor() as cursor:
            cursor.execute(query)
            rows: list[tuple[Any, ...]] = cursor.fetchall()
            return rows

    def _names(self, kinds: Sequence[str] = ("table", "view")) -> list[str]:
        listed = ", ".join(f"'{kind}'" for kind in kinds)
        rows = self._fetched(
            f"SELECT name FROM sqlite_master WHERE type IN ({listed}) "
            "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name"
        )
        return [str(name) for (name,) in rows]

    def _schema(self, query: str) -> pa.Schema:
        """Return the names of a query's columns; the types are those of its first row."""
        with self._connection.cursor(adbc_stmt_kwargs={_BATCH_ROWS: "1"}) as cursor:
            cursor.execute(query)
            return cursor.fetch_record_batch().schema

    def _looked_at(self, query: str, columns: Sequence[str]) -> tuple[dict[str, str], int]:
        """Return the type of each column, and the bytes of the longest row."""
        kinds: dict[str, str] = {}
        most = 0
        for start in range(0, len(columns), _LOOKED_AT):
            some = columns[start : start + _LOOKED_AT]
            names = ", ".join(
                f"max(typeof({quoted(name)})='{kind}')"
                for name in some
                for kind in ("text", "real", "blob")
            )
            length = "+".join(f"ifnull(length(CAST({quoted(name)} AS BLOB)),0)" for name in some)
            [row] = self._fetched(f"SELECT {names}, max({length}) FROM {inside(query)}")
            for index, name in enumerate(some):
                text, real, blob = row[3 * index : 3 * index + 3]
                kinds[name] = "TEXT" if text else "BLOB" if blob else "REAL" if real else "INTEGER"
            most += row[-1] or 0
        return kinds, most

    def _keys(self, table: str) -> Keys:
        name = "'" + table.replace("'", "''") + "'"
        columns = self._fetched(f'SELECT name, type, "notnull", pk FROM pragma_table_info({name})')
        primary = [column for column, *_, at in sorted(columns, key=lambda c: c[3]) if at]
        foreign: dict[int, list[tuple[Any, ...]]] = {}
        for number, *key in self._fetched(
            'SELECT id, "table", "from", "to" '
            f"FROM pragma_foreign_key_list({name}) ORDER BY id, seq"
        ):
            foreign.setdefault(number, []).append(tuple(key))
        return Keys(
            table,
            {column: kind for column, kind, *_ in columns},
            tuple(primary),
            [self._foreign(parts) for _, parts in sorted(foreign.items(), reverse=True)],
            frozenset({column for column, _, needed, at in columns if needed or at}),
        )

    def _foreign(self, parts: Sequence[tuple[Any, ...]]) -> ForeignKey:
        table = str(parts[0][0])
        names = self._names(("table",))
        table = next((name for name in names if name.casefold() == table.casefold()), table)
        keys = tuple(key for *_, key in parts)
        if None in keys:  # the primary key, without a word about its columns
            keys = self._keys_of(table)
        return ForeignKey(tuple(column for _, column, _ in parts), table, keys)

    def _keys_of(self, table: str) -> tuple[str, ...]:
        name = "'" + table.replace("'", "''") + "'"
        rows = self._fetched(f"SELECT name FROM pragma_table_info({name}) WHERE pk ORDER BY pk")
        return tuple(str(column) for (column,) in rows)


def _own(table: str) -> list[str]:
    parts = name_parts(table)
    if len(parts) > 1:
        raise InputError(f"{table}: a table of SQLite has no schema; leave {parts[0]}. out")
    return parts


_FIRST = {"TEXT": "''", "BLOB": "x''", "REAL": "0.5", "INTEGER": "0"}


def _typed(query: str, columns: Sequence[str], kinds: dict[str, str]) -> str:
    """Return the query whose values have the given types, after a row of values of these types."""
    first = ", ".join(f"{_FIRST[kinds[name]]} AS {quoted(name)}" for name in columns)
    rest = ", ".join(
        f"CAST({quoted(name)} AS {kinds[name]})"
        if kinds[name] in ("TEXT", "REAL")
        else quoted(name)
        for name in columns
    )
    return f"SELECT {first} UNION ALL SELECT {rest} FROM {inside(query)}"


def _without_first(batches: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    first = 1
    for batch in batches:
        if len(batch) > first:
            yield batch.slice(first)
        first = 0
