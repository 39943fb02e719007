"""Writing through the drivers of ADBC."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pyarrow as pa


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
