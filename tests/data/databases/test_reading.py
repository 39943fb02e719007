"""Graphs from tables of databases are those of the same rows in files."""

from __future__ import annotations

import csv
import re
import sqlite3
import time
from pathlib import Path

import pytest
import torch

from tests.data.databases import shop
from tests.data.databases.postgres import PATIENCE, Server
from tests.messages import refused
from vrgcn.data.databases import SCHEMES, postgresql, spool, sqlite
from vrgcn.data.databases.opening import TableOpener
from vrgcn.data.databases.source import is_query, name_parts, open_source, quoted_table
from vrgcn.data.databases.url import TableUrl
from vrgcn.data.store import load_graph
from vrgcn.data.tables import ImportSpec, cell_limits, import_tables


def write_csv(home: Path) -> None:
    columns = {
        "users": "id age city label",
        "items": "sku price added",
        "orders": "user_id sku amount",
    }
    for table, rows in shop.ROWS.items():
        with open(home / f"{table}.csv", "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(columns[table].split())
            writer.writerows(rows)


def test_the_graph_of_a_database_is_that_of_the_same_rows_in_files(
    vrgcn, address: str, home: Path
) -> None:
    keep = ("--keep", "bought.amount")
    code, out, err = vrgcn("import", *shop.flags(address), *keep)
    assert code == 0, err
    assert f"24        24   {address}#SELECT * FROM orders" in out
    write_csv(home)
    files = [*shop.flags(address, "files")]
    files[1:3] = ["user=users.csv", "item=items.csv"]
    files[4] = "user-bought-item=orders.csv"
    code, _, err = vrgcn("import", *files, *keep)
    assert code == 0, err
    found, wanted = load_graph("g"), load_graph("files")
    assert found.names.features == wanted.names.features
    assert torch.equal(found.features.to_dense(), wanted.features.to_dense())
    assert torch.equal(found.labels, wanted.labels)
    assert [*found.relations] == [*wanted.relations]
    for name, part in found.relations.items():
        other = wanted.relations[name].adjacency
        assert torch.equal(part.adjacency.indices, other.indices)
        assert torch.equal(part.adjacency.indptr, other.indptr)
    kept = [graph.kept["user-bought-item"]["amount"].values for graph in (found, wanted)]
    assert torch.equal(*kept)
    assert kept[0].sum() == 36
    code, _, err = vrgcn("import", *shop.flags(address, "again"), "--like", "files")
    assert code == 0, err
    again = load_graph("again")
    assert torch.equal(again.features.to_dense(), wanted.features.to_dense())
    assert sorted(path.name for path in home.iterdir() if path.name.startswith(".")) == []


def test_errors_name_the_table_and_what_there_is(vrgcn, address: str) -> None:
    def told(what: str) -> str:
        code, _, err = vrgcn("import", "--edges", f"{address}#{what}", "--out", "new/g")
        assert code == 1
        assert "Traceback" not in err
        assert not Path("new").exists()
        return err

    assert "has no table 'ordrs'; did you mean 'orders'? There are items, orders, users" in told(
        "ordrs"
    )
    assert "zz" in told("SELECT zz FROM orders")
    assert "nope" in told("SELECT * FROM nope")
    assert "did you mean 'orders'?" in told("SELECT * FROM Ordrs")
    assert "has no rows" in told("SELECT * FROM orders WHERE amount > 99")
    assert "more than one column called 'id'" in told("SELECT a.id, b.id FROM users a, users b")
    code, _, err = vrgcn("import", "--edges", address, "--out", "g")
    assert code == 1
    assert "names no table; add #TABLE, or #SELECT ... for a query" in err
    flags = [*shop.flags(address), "--headerless"]
    code, _, err = vrgcn("import", *flags)
    assert code == 1
    assert "names its columns; leave it out" in err


def test_a_row_of_a_database_is_named_in_errors(vrgcn, sqlite_shop: str) -> None:
    flags = [*shop.flags(sqlite_shop)]
    flags[1] = f"user={sqlite_shop}#SELECT * FROM users WHERE id < 11"
    code, _, err = vrgcn("import", *flags)
    assert code == 1
    assert "'11'" in err
    assert "row 23" in err


def test_files_that_are_no_databases_are_refused(vrgcn, home: Path) -> None:
    (home / "text.db").write_text("no database\n" * 500)
    for scheme in ("sqlite", "duckdb"):
        code, _, err = vrgcn("import", "--edges", f"{scheme}:///text.db#t", "--out", "g")
        assert code == 1
        assert f"{scheme}:///text.db" in err
        code, _, err = vrgcn("import", "--edges", f"{scheme}:///nope.db#t", "--out", "g")
        assert code == 1
        assert "there is no file nope.db" in err
        assert not (home / "nope.db").exists()


def test_a_file_of_duckdb_that_was_cut_off_is_told(vrgcn, duckdb_shop: str, home: Path) -> None:
    whole = (home / "shop.duckdb").read_bytes()
    for length in (5_000, len(whole) // 2, len(whole) - 1):
        (home / "shop.duckdb").write_bytes(whole[:length])
        code, _, err = vrgcn("import", "--edges", f"{duckdb_shop}#orders", "--out", "g")
        assert code == 1
        assert duckdb_shop in err
        assert "Traceback" not in err
        assert not (home / "g").exists()


def test_a_missing_driver_is_named_with_the_extra(
    vrgcn, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    (home / "shop.db").touch()
    modules = ("adbc_driver_sqlite", "duckdb", "adbc_driver_postgresql")
    for scheme, module in zip(("sqlite", "duckdb", "postgresql"), modules, strict=True):
        monkeypatch.setitem(sys.modules, module, None)
        code, _, err = vrgcn("import", "--edges", f"{scheme}:///shop.db#t", "--out", "g")
        assert code == 1
        assert f"needs {module.replace('_', '-')}: pip install 'vrgcn[db]'" in err


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drivers and files have batches of 100 rows."""
    for module in (sqlite, spool):
        monkeypatch.setattr(module, "BATCH_ROWS", 100)
    monkeypatch.setattr(postgresql, "BATCH_BYTES", 10_000)


@pytest.mark.usefixtures("small_batches")
def test_a_column_of_sqlite_has_the_type_of_all_its_rows(home: Path) -> None:
    """The driver takes types from the first rows: here they are empty, or whole numbers."""
    connection = sqlite3.connect(home / "odd.db")
    connection.execute("CREATE TABLE odd (id INTEGER, late TEXT, mixed, half, none, bytes)")
    rows = [(n, None, n, n, None, b"x") for n in range(300)]
    rows.append((300, "at last", "n/a", 0.5, None, None))
    connection.executemany("INSERT INTO odd VALUES (?, ?, ?, ?, ?, ?)", rows)
    connection.commit()
    connection.close()
    with TableOpener(home) as opener:
        table = opener(TableUrl.parse("sqlite:///odd.db#odd"), "edges", None)
        kinds = [str(table.kind(column)) for column in table.columns]
        assert kinds == ["int64", "string", "string", "double", "int64", "binary"]
        batches = [batch for _, batch in table.batches(["half", "mixed", "id"])]
        assert sum(map(len, batches)) == 301
        assert batches[0].slice(0, 1).to_pylist() == [{"half": 0.0, "mixed": "0", "id": 0}]
        last = batches[-1].slice(len(batches[-1]) - 1).to_pylist()
        assert last == [{"half": 0.5, "mixed": "n/a", "id": 300}]
        assert len(batches) > 1


@pytest.mark.usefixtures("small_batches")
def test_rows_are_fetched_when_they_are_asked_for_and_once(home: Path) -> None:
    """A query that gives other rows each time is read as one table."""
    connection = sqlite3.connect(home / "many.db")
    connection.execute("CREATE TABLE many (id INTEGER)")
    connection.executemany("INSERT INTO many VALUES (?)", ((n,) for n in range(350)))
    connection.commit()
    connection.close()
    with TableOpener(home) as opener:
        url = TableUrl.parse(
            "sqlite:///many.db#SELECT id, random() AS luck FROM many ORDER BY luck"
        )
        table = opener(url, "edges", None)
        [file] = home.glob(".scratch-*/*.arrow")
        first = file.stat().st_size
        start, batch = next(iter(table.batches(["luck"])))
        assert (start, file.stat().st_size) == (0, first)
        again = [batch for _, batch in table.batches(["id", "luck"])]
        assert file.stat().st_size > 1.5 * first
        assert again[0].column("luck").equals(batch.column("luck"))
        ids = [row for batch in again for row in batch.column("id").to_pylist()]
        assert sorted(ids) == list(range(350))
        thrice = [row for _, batch in table.batches(["id"]) for row in batch.column(0).to_pylist()]
        assert thrice == ids
    assert not list(home.glob(".scratch-*"))


def test_a_cell_that_is_too_long_is_told_by_its_row(
    vrgcn, sqlite_shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cell_limits, "CELL_BYTES", 1000)
    query = (
        "SELECT user_id, sku, CASE user_id WHEN 5 THEN hex(zeroblob(600)) END AS note FROM orders"
    )
    code, _, err = vrgcn("import", "--edges", f"{sqlite_shop}#{query}", "--out", "g")
    assert code == 1
    assert "column 'note' holds a cell of 1.2 kB in row 11" in err
    assert "--drop 'note'" in err


def test_types_of_duckdb_that_no_reader_knows_are_texts(home: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(home / "t.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT 7::HUGEINT AS h, 1.5::DECIMAL(8, 2) AS d, {'a': 1} AS s, "
            "[1, 2] AS l, 'red'::ENUM ('red', 'blue') AS e, uuid() AS u, INTERVAL 1 DAY AS i"
        )
    with TableOpener(home) as opener:
        table = opener(TableUrl.parse("duckdb:///t.duckdb#t"), "edges", None)
        [(_, batch)] = table.batches(table.columns)
        row = batch.to_pylist()[0]
        assert (int(row["h"]), float(row["d"]), row["l"], row["e"]) == (7, 1.5, [1, 2], "red")
        assert row["s"] == "{'a': 1}"
        assert row["i"] == "1 day"
        assert len(row["u"]) == 36


def test_types_of_postgresql_that_no_reader_knows_are_texts(postgres: Server, home: Path) -> None:
    address = postgres.new_schema()
    query = (
        "SELECT 12.50::numeric AS n, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid AS u, "
        "'{\"a\": 1}'::jsonb AS j, '{1,2}'::int[] AS l, 'f'::bool AS b, '10.0.0.1'::inet AS i, "
        "'2024-05-06'::date AS d, interval '1 day' AS v, 3.5::numeric::money AS m -- the end"
    )
    with TableOpener(home) as opener:
        table = opener(TableUrl.parse(f"{address}#{query}"), "edges", None)
        [(_, batch)] = table.batches(table.columns)
        row = batch.to_pylist()[0]
        assert (row["n"], row["u"]) == ("12.50", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")
        assert (row["j"], row["l"], row["b"], row["i"]) == (
            '{"a": 1}',
            [1, 2],
            False,
            "10.0.0.1/32",
        )
        assert (str(row["d"]), row["v"], row["m"]) == ("2024-05-06", "1 day", "3.50")


def test_tables_of_one_server_are_read_as_of_one_moment(postgres: Server, home: Path) -> None:
    address = postgres.new_schema()
    server = Server(address, postgres.data)
    for table in ("one", "two"):
        server.execute(f"CREATE TABLE {table} AS SELECT generate_series(1, 5) AS id")
    with TableOpener(home) as opener:
        opener(TableUrl.parse(f"{address}#one"), "edges", None)
        server.execute("INSERT INTO two VALUES (6)")
        later = opener(TableUrl.parse(f"{address}#two"), "edges", None)
        assert sum(len(batch) for _, batch in later.batches(["id"])) == 5


@pytest.mark.usefixtures("small_batches")
def test_a_connection_that_breaks_leaves_nothing(vrgcn, postgres: Server, home: Path) -> None:
    """The server ends the connection while it sends the rows."""
    address = postgres.new_schema()
    query = (
        "SELECT n AS source, n + 1 AS target FROM generate_series(1, 30000) n "
        "WHERE n < 20000 OR pg_terminate_backend(pg_backend_pid())"
    )
    code, _, err = vrgcn("import", "--edges", f"{address}#{query}", "--out", "g")
    assert code == 1
    read = re.search(r"the rows after the first ([\d,]+) cannot be read: ", err)
    assert read is not None
    assert int(read[1].replace(",", "")) > 0
    assert "Traceback" not in err
    assert list(home.iterdir()) == []


def _wait_for_refusal(address: str) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            open_source(TableUrl.parse(address)).close()
        except ValueError:
            return
    raise AssertionError("the server took everyone in")


def test_a_password_comes_from_the_environment_and_shows_nowhere(
    vrgcn, postgres: Server, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user `locked` of the server needs a password."""
    address = postgres.new_schema()
    server = Server(address, postgres.data)
    server.execute(
        "CREATE TABLE edges AS SELECT n AS source, n % 7 AS target FROM generate_series(1, 9) n"
    )
    schema = address.rpartition("%3D")[2]
    server.execute("DROP ROLE IF EXISTS locked")
    server.execute("CREATE ROLE locked LOGIN PASSWORD 's3cret-word'")
    server.execute(f"GRANT USAGE ON SCHEMA {schema} TO locked")
    server.execute("GRANT SELECT ON edges TO locked")
    rules = postgres.data / "pg_hba.conf"
    rules.write_text(f"local all locked scram-sha-256\n{rules.read_text()}")
    server.execute("SELECT pg_reload_conf()")
    locked = address.replace("postgres:@", "locked@")
    _wait_for_refusal(locked)  # the server reads its rules anew in its own time
    flags = ("--edges", f"{locked}#edges", "--out", "g")
    code, _, err = vrgcn("import", *flags)
    assert code == 1
    assert "no password supplied" in err
    monkeypatch.setenv("PGPASSWORD", "wr0ng-word")
    code, out, err = vrgcn("import", *flags)
    assert code == 1
    assert 'password authentication failed for user "locked"' in err
    assert "wr0ng-word" not in out + err
    monkeypatch.setenv("PGPASSWORD", "s3cret-word")
    code, out, err = vrgcn("import", *flags)
    assert code == 0, err
    written = b"".join(path.read_bytes() for path in (home / "g").rglob("*") if path.is_file())
    assert b"s3cret-word" not in written + (out + err).encode()
    code, out, err = vrgcn(
        "import", "--edges", locked.replace("locked@", "locked:s3cret-word@"), "--out", "h"
    )
    assert code == 2
    assert "leave the password out" in err
    assert "s3cret-word" not in out + err
    service = home / "services.conf"
    host = postgres.uri.partition("host=")[2]
    service.write_text(
        f"[shop]\nhost={host}\nuser=locked\npassword=s3cret-word\ndbname=postgres\n"
        f"options=-csearch_path={schema}\n"
    )
    monkeypatch.delenv("PGPASSWORD")
    monkeypatch.setenv("PGSERVICEFILE", str(service))
    code, _, err = vrgcn("import", "--edges", "postgresql:///?service=shop#edges", "--out", "h")
    assert code == 0, err


def test_a_server_that_cannot_be_reached_is_told(vrgcn, home: Path) -> None:
    pytest.importorskip("adbc_driver_postgresql")
    code, _, err = vrgcn("import", "--edges", "postgresql://127.0.0.1:1/x#t", "--out", "g")
    assert code == 1
    assert "postgresql://127.0.0.1:1/x" in err
    assert "Connection refused" in err


def test_a_table_is_a_name_and_a_query_begins_with_select_or_with() -> None:
    assert is_query("SELECT 1")
    assert is_query(" with a as (select 1) select * from a")
    assert is_query("(select\n1)")
    assert not is_query("selected")
    assert not is_query("select")
    assert quoted_table('odd"name') == '"odd""name"'
    assert quoted_table("shop.my users") == '"shop"."my users"'
    assert name_parts('"shop.users"') == ["shop.users"]
    with refused():
        name_parts("shop..users")


def test_names_of_tables_are_quoted(vrgcn, home: Path) -> None:
    connection = sqlite3.connect(home / "odd.db")
    connection.execute('CREATE TABLE "my ""edges""; DROP TABLE x" (source, target)')
    connection.execute('INSERT INTO "my ""edges""; DROP TABLE x" VALUES (1, 2)')
    connection.commit()
    connection.close()
    name = 'my ""edges""; DROP TABLE x'
    code, _, err = vrgcn("import", "--edges", f'sqlite:///odd.db#"{name}"', "--out", "g")
    assert code == 0, err
    assert load_graph("g").num_nodes == 2


def test_python_takes_addresses_as_texts(sqlite_shop: str) -> None:
    spec = ImportSpec(
        edges=f"{sqlite_shop}#orders",  # type: ignore[arg-type]
        source="user_id",
        target="sku",
        out=Path("g"),
    )
    assert import_tables(spec).out == Path("g")
    assert load_graph("g").num_nodes == 17


def test_another_scheme_is_a_class_and_a_line(
    vrgcn, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SCHEMES, "ring", f"{__name__}:Ring")
    code, _, err = vrgcn("import", "--edges", "ring://here#5", "--out", "g")
    assert code == 0, err
    assert load_graph("g").num_nodes == 5


class Ring:
    """A source of edges in a ring; what is asked for is its length."""

    def __init__(self, url: TableUrl, *, write: bool = False) -> None:
        assert (url.address, write) == ("ring://here", False)

    def rows(self, what: str):
        import pyarrow as pa

        from vrgcn.data.databases.source import Rows

        count = int(what)
        columns = {"source": list(range(count)), "target": [(n + 1) % count for n in range(count)]}
        batch = pa.record_batch(columns)
        return Rows(batch.schema, iter([batch]))

    def close(self) -> None:
        pass
