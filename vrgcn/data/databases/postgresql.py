"""Tables of PostgreSQL servers.

The connection is that of libpq: PGPASSWORD, ~/.pgpass, PGSERVICE and the other variables of its
manual hold here too. Every table is read on a connection of its own, all of them in one snapshot.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from typing import Any

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
    quoted_table,
    readable,
    write_rows,
)
from vrgcn.data.databases.url import TableUrl
from vrgcn.data.tables.reading import BATCH_BYTES
from vrgcn.files.mistakes import InputError

_BATCH_BYTES = "adbc.postgresql.batch_size_hint_bytes"
# A server that does not answer, or no longer, is noticed: seconds, and how often it is asked.
_USUAL = {
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "fallback_application_name": "vrgcn",
}
_ONE_MOMENT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
_INCOMING = "vrgcn_incoming"
_NAME_BYTES = 63  # longer names are cut by the server
_TABLES = """
SELECT c.relname, c.relkind::text FROM pg_class c
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition
  AND c.relnamespace <> 'pg_catalog'::regnamespace AND pg_table_is_visible(c.oid)
ORDER BY 1"""
_COLUMNS = """
SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND a.attnum > 0 AND NOT a.attisdropped
  AND c.relnamespace <> 'pg_catalog'::regnamespace AND pg_table_is_visible(c.oid)
ORDER BY c.relname, a.attnum"""
_CONSTRAINTS = """
SELECT c.relname, k.contype::text, o.relname,
  ARRAY(SELECT a.attname::text FROM unnest(k.conkey) WITH ORDINALITY u(n, i)
    JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = u.n ORDER BY u.i),
  ARRAY(SELECT a.attname::text FROM unnest(k.confkey) WITH ORDINALITY u(n, i)
    JOIN pg_attribute a ON a.attrelid = k.confrelid AND a.attnum = u.n ORDER BY u.i)
FROM pg_constraint k
  JOIN pg_class c ON c.oid = k.conrelid LEFT JOIN pg_class o ON o.oid = k.confrelid
WHERE k.contype IN ('p', 'f') AND NOT c.relispartition AND k.conparentid = 0
  AND pg_table_is_visible(c.oid) AND (o.oid IS NULL OR pg_table_is_visible(o.oid))
ORDER BY c.relname, k.contype, k.conkey"""


class PostgreSQL:
    """A database of a server; see `TableSource`."""

    def __init__(self, url: TableUrl, *, write: bool = False) -> None:
        self._address = url.address
        with naming(url.address, (ValueError,)):
            driver("adbc_driver_postgresql", "adbc-driver-postgresql")
            self._dbapi = driver("adbc_driver_postgresql.dbapi", "adbc-driver-manager")
        self._errors = (self._dbapi.Error, OSError)
        self._opened = ExitStack()  # connections, and after each its cursor
        self._snapshot = ""
        with naming(url.address, self._errors), self._opened:
            self._connection = self._connected()
            if not write:
                self._execute(_ONE_MOMENT)
                [(self._snapshot,)] = self._fetched("SELECT pg_export_snapshot()")
            self._opened = self._opened.pop_all()

    def rows(self, what: str) -> Rows:
        name = f"{self._address}#{' '.join(what.split())}"
        if not is_query(what):
            check_name(self._address, what, self._names())
        with naming(name, self._errors, self._names):
            connection = self._connected()
            cursor = connection.cursor(adbc_stmt_kwargs={_BATCH_BYTES: str(BATCH_BYTES)})
            self._opened.callback(cursor.close)
            cursor.execute(_ONE_MOMENT)
            cursor.execute(f"SET TRANSACTION SNAPSHOT '{self._snapshot}'")
            query = query_of(what)
            cursor.execute(_as_texts(query, cursor.adbc_execute_schema(query)))
            reader = cursor.fetch_record_batch()
        batches = named_batches(name, _closing(reader, cursor, connection), self._errors)
        return Rows(reader.schema, batches)

    def keys(self) -> list[Keys]:
        columns, constraints = self._fetched(_COLUMNS), self._fetched(_CONSTRAINTS)
        found = []
        for table in dict.fromkeys(table for table, *_ in columns):
            mine = [each[1:] for each in columns if each[0] == table]
            own = [each[1:] for each in constraints if each[0] == table]
            primary = next((tuple(names) for kind, _, names, _ in own if kind == "p"), ())
            foreign = [
                ForeignKey(tuple(names), other, tuple(keys))
                for kind, other, names, keys in own
                if kind == "f"
            ]
            kinds = {name: kind for name, kind, _ in mine}
            needed = frozenset(name for name, _, never in mine if never)
            found.append(Keys(table, kinds, primary, foreign, needed))
        return found

    def check_table(self, table: str, schema: pa.Schema | None, *, append: bool) -> None:
        name = quoted_table(table).replace("'", "''")
        [(exists,)] = self._fetched(f"SELECT to_regclass('{name}') IS NOT NULL")
        if exists != append:
            raise no_table(self._address, table, append, self._names())
        if schema is None:
            return
        if append:
            with self._connection.cursor() as cursor:
                have = cursor.adbc_execute_schema(f"SELECT * FROM {quoted_table(table)}").names
            check_columns_of(self._address, table, have, schema.names)
        for column in schema.names:
            if len(column.encode()) > _NAME_BYTES:
                raise InputError(
                    f"{self._address}#{table}: a column of PostgreSQL has a name of "
                    f"{_NAME_BYTES} bytes at most, and {column!r} has {len(column.encode())}"
                )

    def write(self, table: str, rows: pa.RecordBatchReader, *, append: bool) -> None:
        *schema, name = name_parts(table)
        with naming(f"{self._address}#{table}", self._errors):
            if append:
                self._append(table, rows)
            else:
                write_rows(self._connection, name, schema[0] if schema else None, rows)

    def close(self) -> None:
        with suppress(*self._errors):
            self._opened.close()

    def _append(self, table: str, rows: pa.RecordBatchReader) -> None:
        """Add rows to a table. They go to a temporary one first: the server converts the types of
        values between tables, and not of those that come from here."""
        columns = ", ".join(map(quoted, rows.schema.names))
        write_rows(
            *(self._connection, _INCOMING, None, rows),
            then=f"INSERT INTO {quoted_table(table)} ({columns}) SELECT {columns} FROM {_INCOMING}",
        )

    def _names(self) -> list[str]:
        return [str(table) for table, _ in self._fetched(_TABLES)]

    def _connected(self) -> Any:
        connection = self._dbapi.connect(_with_usual(self._address))
        self._opened.callback(connection.close)
        return connection

    def _execute(self, query: str) -> None:
        with self._connection.cursor() as cursor:
            cursor.execute(query)

    def _fetched(self, query: str) -> list[tuple[Any, ...]]:
        with naming(self._address, self._errors), self._connection.cursor() as cursor:
            cursor.execute(query)
            rows: list[tuple[Any, ...]] = cursor.fetchall()
            return rows


def _with_usual(address: str) -> str:
    """Return the address with the usual settings that it does not set itself."""
    settings = address.partition("?")[2]
    given = {part.partition("=")[0] for part in settings.split("&")}
    if os.environ.get("PGCONNECT_TIMEOUT"):
        given.add("connect_timeout")
    more = "&".join(f"{name}={value}" for name, value in _USUAL.items() if name not in given)
    slash = "" if "/" in address.partition("://")[2] or settings else "/"
    return f"{address}{slash}{'&' if settings else '?'}{more}"


def _as_texts(query: str, schema: pa.Schema) -> str:
    """Return the query whose columns of types that no reader knows, such as uuid, are texts."""
    casts = [_cast(field) for field in schema]
    if not any(casts):
        return query
    columns = ", ".join(
        f"{quoted(name)}{cast} AS {quoted(name)}"
        for name, cast in zip(schema.names, casts, strict=True)
    )
    return f"SELECT {columns} FROM {inside(query)}"


def _cast(field: pa.Field) -> str:
    """Return what turns a column into texts; "" if its values are read as they are."""
    kind = field.type
    if (field.metadata or {}).get(b"POSTGRESQL:type") == b"money":
        return "::numeric::text"
    if isinstance(kind, pa.BaseExtensionType):
        # The texts of numeric and json are read; others are bytes of the server's own.
        return "" if pa.types.is_string(kind.storage_type) else "::text"
    return "" if readable(kind) else "::text"


def _closing(
    reader: pa.RecordBatchReader, cursor: Any, connection: Any
) -> Iterator[pa.RecordBatch]:
    with closing(connection), closing(cursor):
        yield from reader
