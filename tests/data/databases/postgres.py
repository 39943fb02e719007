"""A PostgreSQL server for tests, of the wheel `pgserver`; processes of a test run share it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

PATIENCE = 120  # seconds: the wheel itself gives a busy machine ten


@contextmanager
def running_server(folder: Path) -> Iterator[Server]:
    """Start a server on a socket in `folder`, or join the one of another process; skip without the
    wheel."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says where its lock lies
        pgserver = pytest.importorskip("pgserver", reason="pgserver is not installed (Linux only)")
    pytest.importorskip("adbc_driver_postgresql")
    start = pgserver.postgres_server.pg_ctl

    def patient(*words: Any, **options: Any) -> Any:
        return start(*words, **options | {"timeout": PATIENCE})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pgserver.postgres_server, "pg_ctl", patient)
        server = pgserver.get_server(folder, cleanup_mode="delete")
        try:
            yield Server(server.get_uri(), folder)
        finally:
            server.cleanup()


class Server:
    """uri: of its database `postgres`; data: the folder of its files"""

    def __init__(self, uri: str, data: Path) -> None:
        self.uri = uri
        self.data = data
        self._schemas = 0

    def execute(self, statement: str) -> list[tuple[Any, ...]]:
        """Run a statement as the server's owner; return its rows."""
        import adbc_driver_postgresql.dbapi as driver

        with driver.connect(self.uri, autocommit=True) as connection, connection.cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def new_schema(self) -> str:
        """Return the address of an empty schema of its own."""
        self._schemas += 1
        name = f"s{self._schemas}_{os.environ.get('PYTEST_XDIST_WORKER', '')}"
        self.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE")
        self.execute(f"CREATE SCHEMA {name}")
        return f"{self.uri}&options=-csearch_path%3D{name}"
