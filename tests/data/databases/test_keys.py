"""Keys of a database name rows: they are no numbers, and one of them may be the label."""

from __future__ import annotations

import shlex
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.data.databases.test_proposing import printed_command
from vrgcn.data.store import load_graph
from vrgcn.graph.graph import Graph

ADDRESS = "sqlite:///music.db"


@pytest.fixture(autouse=True)
def music(home: Path) -> None:
    """Tracks, their genres, albums and owners: `maker` is a key that no name gives away."""
    with closing(sqlite3.connect("music.db")) as connection, connection:
        connection.executescript(
            """
            CREATE TABLE Genre (GenreId INTEGER PRIMARY KEY, Name TEXT);
            CREATE TABLE Album (AlbumId INTEGER PRIMARY KEY, Price REAL);
            CREATE TABLE People (No INTEGER PRIMARY KEY, Age INTEGER);
            CREATE TABLE Track (
                TrackId INTEGER PRIMARY KEY, AlbumId INTEGER REFERENCES Album,
                GenreId INTEGER REFERENCES Genre, maker INTEGER REFERENCES People, Bytes INTEGER
            );
            WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60)
            INSERT INTO Album SELECT i, i * 1.5 FROM n;
            INSERT INTO Genre VALUES (1, 'Rock'), (2, 'Jazz');
            INSERT INTO People VALUES (7, 30), (8, 40);
            INSERT INTO Track SELECT AlbumId, AlbumId, 1 + AlbumId % 2, 7 + AlbumId % 2,
                100 * AlbumId FROM Album;
            INSERT INTO Track SELECT 100 + AlbumId, AlbumId, 1 + AlbumId % 2, 7, 3 FROM Album;
            """
        )


def imported(vrgcn, *words: str) -> tuple[Graph, str]:
    code, out, err = vrgcn("import", *words, "--out", "g")
    assert code == 0, err
    return load_graph("g"), out


def features(graph: Graph, kind: str) -> list[str]:
    assert graph.names.features is not None
    return [graph.names.features[column] for column in graph.kinds.columns(kind)]


def test_the_proposed_import_takes_a_foreign_key_as_the_label(vrgcn) -> None:
    _, out, _ = vrgcn("import", ADDRESS)
    words = printed_command(out)[2:-2]
    graph, out = imported(vrgcn, *words, "--label", "Track.GenreId", "--ratio", "0.6", "0.2", "0.2")
    assert graph.names.classes == ["1", "2"]
    assert len(graph.train) == 72
    assert "Track-Genre-Genre" not in graph.relations  # its edges would tell the label
    assert "Genre" not in graph.kinds.sizes
    assert "Track-Genre-Genre: its column 'GenreId' is the label of 'Track'" in out
    assert features(graph, "Track") == ["Track.Bytes"]


def test_a_label_that_leaves_no_relation_is_an_error(vrgcn) -> None:
    words = (
        f"--nodes Track={ADDRESS}#Track Genre={ADDRESS}#Genre --edges Track-of-Genre={ADDRESS}"
        "#Track --target of.GenreId --label Track.GenreId --out g"
    )
    code, _, err = vrgcn("import", *shlex.split(words))
    assert code == 1
    assert "--label: no relation is left without those that are made of the label" in err


def test_keys_of_a_query_are_no_numbers(vrgcn) -> None:
    """The relation names the table, the kind a query of it."""
    words = (
        f"--nodes 'Track={ADDRESS}#SELECT * FROM Track' Album={ADDRESS}#Album "
        f"--edges Track-on-Album={ADDRESS}#Track --source on.TrackId --target on.AlbumId "
        "--label Track.GenreId"
    )
    graph, out = imported(vrgcn, *shlex.split(words))
    # `maker` is a key of the database's, AlbumId the end of the relation, GenreId the label.
    assert features(graph, "Track")[:3] == ["Track.maker=7", "Track.maker=8", "Track.Bytes"]
    assert [name for name in features(graph, "Album") if "Id" in name] == []
    assert "Album.on.maker=7" in features(graph, "Album")
    assert "column 'GenreId' is called as the label of 'Track' and could tell it: ignored" in out


def test_a_table_is_read_where_the_keys_of_another_cannot_be(vrgcn) -> None:
    """The module of a virtual table is not there."""
    with closing(sqlite3.connect("music.db")) as connection, connection:
        connection.execute("PRAGMA writable_schema = 1")
        connection.execute(
            "INSERT INTO sqlite_master VALUES ('table', 'odd', 'odd', 0, "
            "'CREATE VIRTUAL TABLE odd USING nowhere')"
        )
    words = ("--source", "TrackId", "--target", "AlbumId")
    graph, _ = imported(vrgcn, "--edges", f"{ADDRESS}#Track", *words)
    assert graph.num_edges > 0
    code, _, err = vrgcn("import", ADDRESS)
    assert code == 1
    assert "Traceback" not in err
    assert "no such module: nowhere" in err


def test_a_key_of_many_rows_is_left_out_with_a_word(vrgcn) -> None:
    words = (
        f"--nodes 'Track={ADDRESS}#SELECT * FROM Track' Genre={ADDRESS}#Genre "
        f"--edges Track-of-Genre={ADDRESS}#Track --source of.TrackId --target of.GenreId"
    )
    graph, out = imported(vrgcn, *shlex.split(words))
    assert [name for name in graph.names.features if "AlbumId" in name] == []
    assert "ids, 60 different" in out
    assert "Track: ignored column: 'AlbumId'" in out
