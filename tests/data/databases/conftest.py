"""Databases of the small shop: files of SQLite and DuckDB, and a server of PostgreSQL."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import named, small_graph
from tests.data.databases import shop
from tests.data.databases.postgres import Server, running_server
from vrgcn import train
from vrgcn.data.store import save_graph


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which commands run."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def sqlite_shop(home: Path) -> str:
    """The address of the shop in SQLite."""
    with sqlite3.connect(home / "shop.db") as connection:
        shop.fill(connection.execute)
    connection.close()
    return "sqlite:///shop.db"


@pytest.fixture
def duckdb_shop(home: Path) -> str:
    """The address of the shop in DuckDB."""
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(home / "shop.duckdb")) as connection:
        shop.fill(connection.execute)
    return "duckdb:///shop.duckdb"


@pytest.fixture(params=["sqlite", "duckdb", "postgresql"])
def address(request: pytest.FixtureRequest, home: Path) -> str:
    """The address of the shop in each kind of database."""
    return str(request.getfixturevalue(f"{request.param}_shop"))


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A PostgreSQL server, which the processes of a run share.

    Its folder is not pytest's: that one is open to its owner only, whenever another run begins,
    and the server has a user of its own.
    """
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", f"alone-{os.getpid()}")
    folder = Path(tempfile.gettempdir()) / f"vrgcn-postgres-{run}"
    with running_server(folder) as server:
        yield server


@pytest.fixture
def postgresql_shop(postgres: Server) -> str:
    """The address of the shop in PostgreSQL."""
    address = postgres.new_schema()
    shop.fill(Server(address, postgres.data).execute)
    return address


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run on a small graph of named nodes and classes."""
    folder = tmp_path_factory.mktemp("trained")
    save_graph(named(small_graph()), folder / "graph")
    train(folder / "graph", out=folder / "run", epochs=1, hidden=4)
    return folder / "run"
