"""An import proposed from the keys of a database, and the command that is printed."""

from __future__ import annotations

import shlex
import sqlite3
from pathlib import Path

import pytest

from vrgcn.data.databases.proposing import propose
from vrgcn.data.databases.source import ForeignKey, Keys
from vrgcn.data.databases.url import TableUrl
from vrgcn.data.store import load_graph

URL = TableUrl.parse("sqlite:///x.db")


def keys(table: str, columns: str, primary: str = "", **foreign: str) -> Keys:
    """A table: columns and primary key by their names, foreign keys as column="table.key"."""
    names = columns.split()
    own = [
        ForeignKey((column,), other.partition(".")[0], (other.partition(".")[2],))
        for column, other in foreign.items()
    ]
    return Keys(table, dict.fromkeys(names, "TEXT"), tuple(primary.split()), own, frozenset(names))


def settings(*tables: Keys) -> dict[str, list[str]]:
    return propose(tables, lambda table, columns: False).settings(URL)


def printed_command(out: str) -> list[str]:
    lines = out[out.index("vrgcn import") :].partition("\n\n")[0]
    return shlex.split(lines.replace("\\\n", " "))


def test_the_printed_command_runs_unchanged(vrgcn, address: str) -> None:
    code, out, err = vrgcn("import", address)
    assert code == 0, err
    assert "relation users-orders-items" in out
    assert not Path("graphs").exists()
    program, *words = printed_command(out)
    assert program == "vrgcn"
    assert f"users={address}#users" in words
    assert (
        words[words.index("--out") + 1]
        == f"graphs/{'postgres' if 'postgres' in address else 'shop'}"
    )
    code, _, err = vrgcn(*words)
    assert code == 0, err
    graph = load_graph(words[-1])
    assert graph.kinds.sizes == {"items": 5, "users": 12}
    assert list(graph.relations)[:1] == ["users-orders-items"]
    assert len(graph.relations["users-orders-items"].adjacency.indices) == 24


def test_rows_with_a_time_propose_which_tables_are_dated(
    vrgcn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with sqlite3.connect("f1.db") as database:
        database.executescript(
            """
            CREATE TABLE drivers (id INTEGER PRIMARY KEY, born DATE);
            CREATE TABLE races (id INTEGER PRIMARY KEY, name TEXT);
            CREATE TABLE results (driver INTEGER REFERENCES drivers (id),
                race INTEGER REFERENCES races (id), paid TIMESTAMP, date TIMESTAMP, points REAL);
            INSERT INTO drivers VALUES (1, '1990-01-01'), (2, '1991-01-01');
            INSERT INTO races VALUES (1, 'Monza'), (2, 'Spa');
            INSERT INTO results VALUES (1, 1, '2020-02-02', '2020-01-01', 3),
                (2, 2, '2020-02-03', '2020-02-01', 5);
            """
        )
    database.close()
    Path("dnf.csv").write_text(
        "driver,at,label,split\n1,2020-01-01,0,train\n1,2020-01-31,1,train\n2,2020-03-01,0,test\n"
    )
    flags = ("--rows", "driver=dnf.csv", "--at", "at", "--known-after", "12h")
    code, out, err = vrgcn("import", "sqlite:///f1.db", *flags)
    assert code == 0, err
    assert "results: dated by 'date'; it also has 'paid'" in out
    _, *words = printed_command(out)
    assert words[words.index("--dated") :][:2] == ["--dated", "results.date"]
    assert words[words.index("--rows") :][:2] == ["--rows", "drivers=dnf.csv"]
    code, _, err = vrgcn(*words)
    assert code == 0, err
    graph = load_graph("graphs/f1")
    assert graph.target == "dnf"
    assert graph.relations["results-last-dnf"].num_edges == 3
    code, _, err = vrgcn("import", "sqlite:///f1.db", "--rows", "pilot=dnf.csv", "--at", "at")
    assert code == 1
    assert "must be KIND=FILE, KIND one of drivers, races, results" in err


def test_the_table_of_the_rows_is_no_kind_whose_facts_they_would_see(
    vrgcn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with sqlite3.connect("shop.db") as database:
        database.executescript(
            """
            CREATE TABLE customers (id INTEGER PRIMARY KEY, city TEXT);
            CREATE TABLE orders (id INTEGER PRIMARY KEY, at TEXT,
                customer_id INTEGER REFERENCES customers (id));
            CREATE TABLE churn (customer_id INTEGER REFERENCES customers (id), at TEXT, left INT);
            INSERT INTO customers VALUES (1, 'Bonn'), (2, 'Ulm');
            INSERT INTO orders VALUES (1, '2024-01-01', 1), (2, '2024-02-01', 2);
            INSERT INTO churn VALUES (1, '2024-01-02', 0), (2, '2024-02-02', 1),
                (1, '2024-03-01', 1);
            """
        )
    database.close()
    flags = ("--rows", "customer=sqlite:///shop.db#churn", "--at", "at", "--label", "left")
    code, out, err = vrgcn("import", "sqlite:///shop.db", *flags)
    assert code == 0, err
    assert "the rows of --rows, no kind" in out
    assert "add --train-until DATE --val-until DATE" in out
    _, *words = printed_command(out)
    code, _, err = vrgcn(*words, "--train-until", "2024-01-31", "--val-until", "2024-02-15")
    assert code == 0, err
    graph = load_graph("graphs/shop")
    assert graph.kinds.sizes == {"customers": 2, "orders": 2, "churn": 3}
    assert [len(part) for part in (graph.train, graph.val, graph.test)] == [1, 1, 1]


def test_a_table_whose_key_is_two_foreign_keys_is_a_relation() -> None:
    found = settings(
        keys("users", "id age", "id"),
        keys("items", "sku price", "sku"),
        keys("likes", "u i by", "i u", u="users.id", i="items.sku", by="users.id"),
    )
    assert found["edges"] == ["items-likes-users=sqlite:///x.db#likes"]
    assert found["source"] == ["items-likes-users.i"]
    assert found["target"] == ["items-likes-users.u"]
    assert found["drop"] == ["items-likes-users.by"]


def test_a_table_of_two_foreign_keys_that_none_refers_to_is_a_relation() -> None:
    tables = [
        keys("users", "id age", "id"),
        keys("orders", "no u i", "no", u="users.id", i="items.sku"),
        keys("items", "sku price", "sku"),
    ]
    found = settings(*tables)
    assert found["edges"] == ["users-orders-items=sqlite:///x.db#orders"]
    assert found["drop"] == ["users-orders-items.no"]
    found = settings(*tables, keys("bills", "id order_id", "id", order_id="orders.no"))
    assert found["nodes"] == [
        f"{name}=sqlite:///x.db#{name}" for name in ("users", "orders", "items", "bills")
    ]
    assert found["edges"] == [
        "orders-u-users=sqlite:///x.db#orders",
        "orders-i-items=sqlite:///x.db#orders",
        "bills-order-orders=sqlite:///x.db#bills",
    ]
    assert found["target"] == [
        "orders-u-users.u",
        "orders-i-items.i",
        "bills-order-orders.order_id",
    ]


def test_a_table_of_one_foreign_key_is_a_kind_with_a_relation() -> None:
    found = settings(keys("staff", "code boss", "code", boss="staff.code"))
    assert found["nodes"] == ["staff=sqlite:///x.db#staff"]
    assert found["edges"] == ["staff-boss-staff=sqlite:///x.db#staff"]
    assert "id" not in found  # the first column
    found = settings(keys("staff", "name code boss", "code", boss="staff.code"))
    assert found["id"] == ["staff.code"]


def test_one_table_of_nodes_and_one_of_edges_have_no_names() -> None:
    found = settings(
        keys("papers", "title doi", "doi"),
        keys("cites", "citing cited", "", citing="papers.doi", cited="papers.doi"),
    )
    assert found == {
        "nodes": ["sqlite:///x.db#papers"],
        "edges": ["sqlite:///x.db#cites"],
        "id": ["doi"],
        "source": ["citing"],
        "target": ["cited"],
    }


def test_odd_tables_run_too(vrgcn, home: Path) -> None:
    """Names with spaces, keys of two columns, no key at all, empty ends, bytes, a table alone."""
    with sqlite3.connect("odd.db") as connection:
        connection.executescript(
            """
            CREATE TABLE "my users" ("user no" INTEGER PRIMARY KEY, age REAL, photo BLOB);
            INSERT INTO "my users" VALUES (1, 20, x'00'), (2, 30, NULL), (3, 40, NULL);
            CREATE TABLE knows (a REFERENCES "my users", b REFERENCES "my users", since INTEGER);
            INSERT INTO knows VALUES (1, 2, 5), (2, 3, 6), (3, NULL, 7);
            CREATE TABLE visits (who INTEGER REFERENCES "my users" ("user no"), length REAL);
            INSERT INTO visits VALUES (1, 0.5), (1, 1.5), (NULL, 2.5);
            CREATE TABLE pair (x INTEGER, y INTEGER, PRIMARY KEY (x, y));
            CREATE TABLE of_pair (x INTEGER, y INTEGER, FOREIGN KEY (x, y) REFERENCES pair (x, y));
            """
        )
    connection.close()
    code, out, err = vrgcn("import", "sqlite:///odd.db", "--out", "made here")
    assert code == 0, err
    assert "pair" in out
    assert "left out: no key leads to or from it" in out
    assert "of_pair: the foreign key (x, y) has several columns and is left out" in out
    assert "knows: rows that lack an end are left out" in out
    assert "visits: has no key of one column; its rows are numbered" in out
    code, _, err = vrgcn(*printed_command(out)[1:])
    assert code == 0, err
    graph = load_graph("made here")
    assert graph.kinds.sizes == {"my_users": 3, "visits": 3}
    assert len(graph.relations["my_users-knows-my_users"].adjacency.indices) == 2
    assert len(graph.relations["visits-who-my_users"].adjacency.indices) == 2
    assert [name for name in graph.names.features if "photo" in name] == []


def test_what_is_no_database_is_told(vrgcn, home: Path) -> None:
    with sqlite3.connect("flat.db") as connection:
        connection.execute("CREATE TABLE a (x)")
    connection.close()
    code, _, err = vrgcn("import", "sqlite:///flat.db")
    assert code == 1
    assert "sqlite:///flat.db: has no foreign keys that relate its tables, and tables are a" in err
    code, _, err = vrgcn("import", "flat.db")
    assert code == 2
    assert "but for the address of a database, such as sqlite:///shop.db" in err
    code, _, err = vrgcn("import", "sqlite:///flat.db#a")
    assert code == 2
    assert "leave out what follows #, and an import of all tables is proposed" in err
    code, _, err = vrgcn("import", "sqlite:///flat.db", "--label", "a.x")
    assert code == 2
    assert "--label: add it to the command that `vrgcn import sqlite:///flat.db` prints" in err
    code, _, err = vrgcn("import", "postgresql://me:s3cret@host/shop")
    assert code == 2
    assert "s3cret" not in err


def test_a_password_in_a_word_that_belongs_nowhere_is_not_repeated(vrgcn) -> None:
    code, _, err = vrgcn("info", "a", "postgresql://me:s3cret@host/shop")
    assert code == 2
    assert "postgresql://me:***@host/shop" in err


@pytest.mark.parametrize("name", ["a.b", "select x", "1st", "with"])
def test_odd_names_of_tables_are_quoted_in_addresses(name: str) -> None:
    found = settings(keys("users", "id", "id"), keys(name, "id u", "id", u="users.id"))
    assert found["nodes"][1].endswith("#with" if name == "with" else f'#"{name}"')
