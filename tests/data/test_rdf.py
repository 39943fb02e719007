"""RDF files are tables of triples: N-Triples in parts, Turtle by rdflib."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.messages import refused
from vrgcn import load_graph
from vrgcn.data.tables import ImportSpec, import_tables, rdf
from vrgcn.data.tables.rdf import NTriplesTable, TurtleTable
from vrgcn.graph.graph import Graph

TRIPLES = """# people and what they wrote
<http://x/ann> <http://x/wrote> <http://x/book> .

<http://x/ann> <http://x/knows> _:b0 .
<http://x/bob> <http://x/name> "Bob <the> first ."@en .
_:b0 <http://x/wrote> <http://x/book> . # a comment
<http://x/bob>\t<http://x/knows>\t<http://x/ann>\t.
<http://x/bob> <http://x/age> "7"^^<http://www.w3.org/2001/XMLSchema#integer> .
"""
TURTLE = """@prefix x: <http://x/> .
x:ann x:wrote x:book ; x:knows _:b0 .
x:bob x:name "Bob"@en ; x:knows x:ann ; x:age 7 .
"""
ROWS = [
    ("http://x/ann", "http://x/wrote", "http://x/book"),
    ("http://x/ann", "http://x/knows", "_:b0"),
    ("_:b0", "http://x/wrote", "http://x/book"),
    ("http://x/bob", "http://x/knows", "http://x/ann"),
]


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def rows(table: NTriplesTable | TurtleTable) -> list[tuple[str, ...]]:
    parts = [batch for _, batch in table.batches(rdf.COLUMNS)]
    return [tuple(row.values()) for batch in parts for row in batch.to_pylist()]


def imported(path: Path, out: Path) -> Graph:
    import_tables(ImportSpec(edges=path, relation_column="relation", out=out))
    return load_graph(out)


@pytest.mark.parametrize("size", [None, 64])
def test_n_triples_are_rows_without_those_of_literals(tmp_path, monkeypatch, size):
    if size is not None:  # the parts of a large file
        monkeypatch.setattr(rdf, "BATCH_BYTES", size)
    path = tmp_path / "people.nt"
    table = NTriplesTable(write(path, TRIPLES))
    assert rows(table) == ROWS
    assert table.notes == ["2 triples with a literal are left out: it names no node"]
    assert table.where([3, 0]) == ["row 4 (line 7)", "row 1 (line 2)"]
    zipped = tmp_path / "people.nt.gz"
    zipped.write_bytes(gzip.compress(path.read_bytes()))
    assert rows(NTriplesTable(zipped)) == ROWS


def test_a_file_of_triples_becomes_a_graph_of_relations(tmp_path):
    graph = imported(write(tmp_path / "people.nt", TRIPLES), tmp_path / "graph")
    assert graph.num_edges == 4
    assert len(graph.given) == 2
    assert sorted(graph.names.ids_of("node").to_pylist()) == sorted(
        {end for source, _, target in ROWS for end in (source, target)}
    )


def test_turtle_is_the_same_triples(tmp_path):
    pytest.importorskip("rdflib")
    table = TurtleTable(write(tmp_path / "people.ttl", TURTLE))
    named = [row for row in ROWS if "_:" not in "".join(row)]
    assert [row for row in rows(table) if "_:" not in "".join(row)] == sorted(named)
    assert table.notes == ["2 triples with a literal are left out: it names no node"]
    assert imported(tmp_path / "people.ttl", tmp_path / "graph").num_edges == 3


def test_mistakes_name_the_file_and_the_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for text in (
        TRIPLES + "<http://x/ann> <http://x/wrote> <http://x/book>\n",  # no point
        "http://x/ann http://x/wrote http://x/book .\n",
        '<http://x/bob> <http://x/name> "Bob" .\n',
    ):
        with refused():
            NTriplesTable(write(Path("people.nt"), text))
    pytest.importorskip("rdflib")
    with refused(varying=r"at line .*"):
        TurtleTable(write(Path("people.ttl"), "x:ann x:wrote"))
