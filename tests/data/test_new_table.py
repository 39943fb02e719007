"""A kind of table is a file with a class, and a line in TABLES."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from vrgcn.data.store import load_graph
from vrgcn.data.tables.reading import TABLES, check_columns


class LinesTable:
    """A file of JSON objects, one a line."""

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self.notes: list[str] = []
        self.header_doubt = ""
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        self._table = pa.Table.from_pylist(rows)
        self.columns = list(self._table.column_names)
        check_columns(self.name, self.columns)

    def kind(self, column: str) -> pa.DataType:
        return self._table.schema.field(column).type

    def batches(self, columns: Sequence[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
        start = 0
        for batch in self._table.select(list(columns)).to_batches(max_chunksize=2):
            yield start, batch
            start += len(batch)

    def where(self, rows: Sequence[int]) -> list[str]:
        return [f"line {row + 1}" for row in rows]


@pytest.fixture
def lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setitem(TABLES, ".jsonl", ("JSON lines", __name__, "LinesTable"))
    nodes = [{"id": i, "size": i / 2, "topic": "ab"[i % 2]} for i in range(6)]
    edges = [{"source": i, "target": (i + 1) % 6} for i in range(6)]
    for name, rows in (("nodes", nodes), ("edges", edges)):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / f"{name}.jsonl").write_text(text)
    return tmp_path


def test_a_kind_of_table_is_imported(vrgcn, lines: Path) -> None:
    flags = ("--edges", "edges.jsonl", "--nodes", "nodes.jsonl", "--label", "topic")
    code, _, err = vrgcn("import", *flags, "--out", "g")
    assert code == 0, err
    graph = load_graph(lines / "g")
    assert (graph.num_nodes, graph.num_classes, graph.num_features) == (6, 2, 1)
    assert len(graph.adjacency.indices) == 12


def test_its_rows_and_its_kind_are_named_in_errors(vrgcn, lines: Path) -> None:
    with (lines / "edges.jsonl").open("a") as file:
        file.write('{"source": 0, "target": 77}\n')
    flags = ("--edges", "edges.jsonl", "--nodes", "nodes.jsonl", "--out", "g")
    code, _, err = vrgcn("import", *flags)
    assert code == 1
    assert "77" in err
    assert "line 7" in err
    code, _, err = vrgcn("import", *flags, "--headerless")
    assert code == 1
    assert "--headerless: edges.jsonl is a JSON lines file, which names its columns" in err
    (lines / "edges.xyz").touch()
    (lines / "edges.xyz").write_text("a")
    code, _, err = vrgcn("import", "--edges", "edges.xyz", "--out", "g")
    assert (
        "the same with .gz, and .parquet, .nt, .ttl, .jsonl; if it is text, give --delimiter" in err
    )
