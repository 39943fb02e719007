"""Predictions that go to a database: all rows or none."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.data.databases.postgres import Server
from tests.messages import refused
from vrgcn import train
from vrgcn.data.databases import sending, sqlite
from vrgcn.data.databases.opening import TableOpener
from vrgcn.data.databases.sending import destination
from vrgcn.data.databases.source import open_source
from vrgcn.data.databases.url import TableUrl

Run = Callable[..., tuple[int, str, str]]


def rows_of(address: str, what: str) -> list[dict[str, Any]]:
    with TableOpener() as opener:
        table = opener(TableUrl.parse(f"{address}#{what}"), "edges", None)
        return [row for _, batch in table.batches(table.columns) for row in batch.to_pylist()]


def test_the_rows_of_a_table_are_those_of_the_file(vrgcn: Run, trained: Path, address: str) -> None:
    code, out, err = vrgcn("predict", trained, "--out", f"{address}#predictions")
    assert code == 0, err
    assert f"exact predictions of 120 nodes written to {address}#predictions" in out
    assert vrgcn("predict", trained, "--out", "p.parquet")[0] == 0
    wanted = pq.read_table("p.parquet").to_pylist()
    assert rows_of(address, "predictions") == wanted
    code, _, err = vrgcn("predict", trained, "--out", f"{address}#predictions")
    assert code == 1
    assert "has a table 'predictions' already; choose another name, or" in err
    code, _, err = vrgcn("predict", trained, "--out", f"{address}#predictions", "--append")
    assert code == 0, err
    assert len(rows_of(address, "predictions")) == 240


def test_rows_are_added_by_the_names_and_in_the_types_of_the_columns(
    vrgcn: Run, trained: Path, postgres: Server
) -> None:
    address = postgres.new_schema()
    server = Server(address, postgres.data)
    server.execute(
        "CREATE TABLE p (p_1 numeric(6, 3), made date DEFAULT '2024-05-06', id varchar(9))"
    )
    flags = ("--out", f"{address}#p", "--top", 1, "--append")
    code, _, err = vrgcn("predict", trained, *flags)
    assert code == 1
    assert "#p has no column 'label_1'; its columns are p_1, made, id" in err
    server.execute("ALTER TABLE p ADD label_1 text")
    code, _, err = vrgcn("predict", trained, *flags)
    assert code == 0, err
    [(count, first, made)] = server.execute("SELECT count(*), min(id), min(made)::text FROM p")
    assert (count, first, made) == (120, "n-0", "2024-05-06")


def test_mistakes_are_told_before_the_work(vrgcn: Run, trained: Path, address: str) -> None:
    def told(out: str, *more: object) -> str:
        code, _, err = vrgcn("predict", trained, "--out", out, *more)
        assert code == 1
        return err

    assert "--append: " in told(f"{address}#predictions", "--append")
    assert "names no table; add #TABLE" in told(address)
    assert "names no table; add #TABLE" in told(f"{address}#SELECT 1")
    assert "--append adds to a table of a database, and p.csv is a file" in told(
        "p.csv", "--append"
    )
    with refused():
        rows_of(address, "predictions")


def test_a_file_that_was_not_there_is_not_left_without_a_table(
    vrgcn: Run, trained: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("it broke")

    for scheme in ("sqlite", "duckdb"):
        flags = ("--out", f"{scheme}:///{scheme}.db#p")
        with monkeypatch.context() as patch:
            patch.setattr(sending.pq.ParquetFile, "iter_batches", fail)
            code, _, err = vrgcn("predict", trained, *flags)
        assert code == 1
        assert "it broke" in err
        assert not (home / f"{scheme}.db").exists()
        assert vrgcn("predict", trained, *flags)[0] == 0
        assert len(rows_of(f"{scheme}:///{scheme}.db", "p")) == 120


def broken(rows: int) -> pa.RecordBatchReader:
    """Rows in batches of ten that end in an error."""

    def batches():
        for start in range(0, rows, 10):
            yield pa.record_batch({"id": list(range(start + 100, start + 110))})
        raise OSError("the disk has gone")

    return pa.RecordBatchReader.from_batches(pa.schema([("id", pa.int64())]), batches())


@pytest.mark.parametrize("append", [False, True])
def test_rows_that_end_in_an_error_leave_nothing(address: str, append: bool) -> None:
    url = TableUrl.parse(f"{address}#{'users' if append else 'fresh'}")
    with (
        closing(open_source(url, write=True)) as source,
        pytest.raises(Exception, match="the disk has gone"),
    ):
        source.write(url.what, broken(50), append=append)
    assert len(rows_of(address, "users")) == 12
    with refused():
        rows_of(address, "fresh")


def test_a_connection_that_breaks_while_it_writes_leaves_nothing(
    vrgcn: Run, trained: Path, postgres: Server, home: Path
) -> None:
    """The server ends the connection when it gets the node n-60."""
    address = postgres.new_schema()
    server = Server(address, postgres.data)
    server.execute("CREATE TABLE p (id text, label_1 text, p_1 real)")
    server.execute(
        "CREATE FUNCTION ends() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "IF NEW.id = 'n-60' THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF; "
        "RETURN NEW; END $$"
    )
    server.execute("CREATE TRIGGER ends BEFORE INSERT ON p FOR EACH ROW EXECUTE FUNCTION ends()")
    code, _, err = vrgcn("predict", trained, "--out", f"{address}#p", "--top", 1, "--append")
    assert code == 1
    assert f"{address}#p: " in err
    assert "Traceback" not in err
    assert server.execute("SELECT count(*) FROM p") == [(0,)]
    tables = "SELECT count(*) FROM pg_class WHERE relname LIKE 'vrgcn%'"
    assert server.execute(tables) == [(0,)]


def test_a_trigger_of_sqlite_that_refuses_a_row_leaves_nothing(
    vrgcn: Run, trained: Path, home: Path
) -> None:
    with sqlite3.connect("p.db") as connection:
        connection.execute("CREATE TABLE p (id text, label_1 text, p_1 real)")
        connection.execute(
            "CREATE TRIGGER ends BEFORE INSERT ON p WHEN NEW.id = 'n-60' "
            "BEGIN SELECT RAISE(ABORT, 'no more of these'); END"
        )
    code, _, err = vrgcn("predict", trained, "--out", "sqlite:///p.db#p", "--top", 1, "--append")
    assert code == 1
    assert "no more of these" in err
    assert connection.execute("SELECT count(*) FROM p").fetchone() == (0,)
    connection.close()


def test_a_long_name_of_a_column_is_refused_by_postgresql(postgres: Server, home: Path) -> None:
    out = TableUrl.parse(f"{postgres.new_schema()}#p")
    with (
        refused(),
        destination(out) as path,
    ):
        pq.write_table(pa.table({f"p_{'x' * 64}": [1.0]}), path)


def test_a_file_is_written_as_it_is(home: Path) -> None:
    with destination(Path("p.csv")) as path:
        assert path == Path("p.csv")


@pytest.fixture(scope="module")
def links(trained: Path) -> Path:
    """The folder of a run that predicts edges of the same graph."""
    out = trained.parent / "links"
    train(trained.parent / "graph", out=out, predict="edges", epochs=1, hidden=4, model="gcn")
    return out


def test_pairs_come_from_a_database_and_their_scores_go_to_another(
    vrgcn: Run, links: Path, home: Path
) -> None:
    with sqlite3.connect("pairs.db") as connection:
        connection.execute("CREATE TABLE pairs (note, target, source)")
        connection.execute("INSERT INTO pairs VALUES (1, 'n-5', 'n-1'), (2, 'n-0', 'n-7')")
    connection.close()
    Path("pairs.csv").write_text("source,target\nn-1,n-5\nn-7,n-0\n")
    flags = ("--pairs", "sqlite:///pairs.db#pairs", "--out", "duckdb:///scores.db#scores")
    code, out, err = vrgcn("predict", links, *flags)
    assert code == 0, err
    assert "exact scores of 2 pairs written to duckdb:///scores.db#scores" in out
    assert vrgcn("predict", links, "--pairs", "pairs.csv", "--out", "p.parquet")[0] == 0
    assert rows_of("duckdb:///scores.db", "scores") == pq.read_table("p.parquet").to_pylist()
    code, _, err = vrgcn("predict", links, "--pairs", "sqlite:///pairs.db#nope", "--out", "q.csv")
    assert code == 1
    assert "sqlite:///pairs.db has no table 'nope'" in err


def test_embeddings_and_recommendations_go_to_tables_too(
    vrgcn: Run, links: Path, home: Path
) -> None:
    for command, words in (("embed", ()), ("recommend", ("--top", 2))):
        code, out, err = vrgcn(command, links, *words, "--out", f"sqlite:///all.db#{command}")
        assert code == 0, err
        assert f"written to sqlite:///all.db#{command}" in out
        assert vrgcn(command, links, *words, "--out", f"{command}.parquet")[0] == 0
        assert (
            rows_of("sqlite:///all.db", command) == pq.read_table(f"{command}.parquet").to_pylist()
        )


LOCK = """
import sqlite3
connection = sqlite3.connect("busy.db", isolation_level=None)
connection.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
input()
"""


def test_a_file_that_another_has_locked_is_told(
    vrgcn: Run, trained: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "_PATIENCE", 0)
    # Locks of files are between processes.
    with subprocess.Popen(
        [sys.executable, "-c", LOCK], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        assert other.stdout.readline() == b"locked\n"
        code, _, err = vrgcn("predict", trained, "--out", "sqlite:///busy.db#p")
        other.stdin.close()
    assert code == 1
    assert "sqlite:///busy.db: database is locked" in err
    assert vrgcn("predict", trained, "--out", "sqlite:///busy.db#p")[0] == 0


@pytest.mark.parametrize("scheme", ["sqlite", "duckdb"])
@pytest.mark.parametrize(
    "columns",
    [
        ["id", "p_A", "p_a"],
        ["id", "p_a\0b"],
    ],
)
def test_names_that_a_database_would_change_are_refused(
    scheme: str, columns: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "shop.db"
    out = TableUrl.parse(f"{scheme}:///{file}#p")
    with refused(), destination(out) as path:
        pq.write_table(pa.table([[1]] * len(columns), columns), path)
    with closing(open_source(out, write=True)) as source:
        source.check_table("p", None, append=False)  # nothing has the name
