"""Tables of DuckDB files."""

from __future__ import annotations

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
)
from vrgcn.data.databases.url import TableUrl

_ROWS = 2048  # of a batch: as many as DuckDB computes at once
_MEMORY = "1GB"  # for DuckDB's own blocks; larger results go to its temporary files
_OWN = "database_name = current_database() AND schema_name = current_schema()"


class Duck:
    """A file of DuckDB; see `TableSource`. Nobody else can write while it is open."""

    def __init__(self, url: TableUrl, *, write: bool = False) -> None:
        self._address = url.address
        with naming(url.address, (ValueError,)):
            duckdb = driver("duckdb", "duckdb")
        self._path = url.file
        self._new = write and not self._path.exists()
        if not write and not self._path.is_file():
            raise FileNotFoundError(f"{url.address}: there is no file {self._path}")
        self._errors = (duckdb.Error,)
        self._readers: list[pa.RecordBatchReader] = []
        with naming(url.address, self._errors):
            config = {"memory_limit": _MEMORY}
            self._connection = duckdb.connect(str(self._path), read_only=not write, config=config)

    def rows(self, what: str) -> Rows:
        name = f"{self._address}#{' '.join(what.split())}"
        if not is_query(what):
            check_name(self._address, what, self._names())
        with naming(name, self._errors, self._names):
            # A cursor is a connection of its own, so that several results are read side by side.
            cursor = self._connection.cursor()
            query = query_of(what)
            query = _as_texts(query, cursor.sql(query).limit(0).to_arrow_table().schema)
            reader = cursor.sql(query).to_arrow_reader(_ROWS)
            self._readers.append(reader)
        return Rows(reader.schema, named_batches(name, reader, self._errors))

    def keys(self) -> list[Keys]:
        columns = self._fetched(
            "SELECT table_name, column_name, data_type, is_nullable FROM duckdb_columns() "
            f"WHERE {_OWN} AND NOT internal ORDER BY table_name, column_index"
        )
        constraints = self._fetched(
            "SELECT table_name, constraint_type, constraint_column_names, referenced_table, "
            f"referenced_column_names FROM duckdb_constraints() WHERE {_OWN} "
            "ORDER BY table_name, constraint_index"
        )
        found = []
        for table in self._names(views=False):
            own = [each[1:] for each in constraints if each[0] == table]
            primary = [tuple(names) for kind, names, *_ in own if kind == "PRIMARY KEY"]
            foreign = [
                ForeignKey(tuple(names), other, tuple(keys))
                for kind, names, other, keys in own
                if kind == "FOREIGN KEY"
            ]
            mine = [each[1:] for each in columns if each[0] == table]
            needed = {name for name, _, gaps in mine if not gaps} | {*sum(primary, ())}
            kinds = {name: kind for name, kind, _ in mine}
            found.append(Keys(table, kinds, sum(primary, ()), foreign, frozenset(needed)))
        return found

    def check_table(self, table: str, schema: pa.Schema | None, *, append: bool) -> None:
        names = [name.casefold() for name in self._names()]
        if (name_parts(table)[-1].casefold() in names) != append:
            raise no_table(self._address, table, append, self._names())
        if append and schema is not None:
            with naming(f"{self._address}#{table}", self._errors):
                have = self._connection.sql(f"FROM {quoted_table(table)} LIMIT 0").columns
            check_columns_of(self._address, table, have, schema.names)

    def write(self, table: str, rows: pa.RecordBatchReader, *, append: bool) -> None:
        name, connection = quoted_table(table), self._connection
        with naming(f"{self._address}#{table}", self._errors):
            connection.register("vrgcn_rows", rows)
            connection.begin()
            try:
                if append:
                    connection.execute(f"INSERT INTO {name} BY NAME SELECT * FROM vrgcn_rows")
                else:
                    connection.execute(f"CREATE TABLE {name} AS SELECT * FROM vrgcn_rows")
                connection.commit()
            except BaseException:
                connection.rollback()
                raise
            self._new = False

    def close(self) -> None:
        for reader in self._readers:  # one that is left open would block the file's next opening
            reader.close()
        self._connection.close()
        if self._new:  # nothing was written
            self._path.unlink(missing_ok=True)

    def _fetched(self, query: str) -> list[tuple[Any, ...]]:
        with naming(self._address, self._errors):
            rows: list[tuple[Any, ...]] = self._connection.cursor().execute(query).fetchall()
            return rows

    def _names(self, *, views: bool = True) -> list[str]:
        query = f"SELECT table_name FROM duckdb_tables() WHERE {_OWN} AND NOT internal"
        if views:
            query += f" UNION SELECT view_name FROM duckdb_views() WHERE {_OWN} AND NOT internal"
        return [str(name) for (name,) in self._fetched(f"{query} ORDER BY 1")]


def _as_texts(query: str, schema: pa.Schema) -> str:
    """Return the query whose columns of types that no reader knows, such as structs, are texts."""
    odd = [field.name for field in schema if not readable(field.type)]
    if not odd:
        return query
    texts = ", ".join(f"CAST({quoted(name)} AS VARCHAR) AS {quoted(name)}" for name in odd)
    return f"SELECT * REPLACE ({texts}) FROM {inside(query)}"
