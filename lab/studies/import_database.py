"""Time and memory of `vrgcn import` from databases, beside the same tables as Parquet files.

    python -m lab.studies.import_database
    python -m lab.studies.import_database --nodes 50000 --edges 400000 --kinds parquet sqlite
    python -m lab.studies.import_database --stream 3000000

With --stream nothing is imported: that many rows of 300 letters each are read twice, as an import
reads them, and the memory that this takes is printed.

Tables are made in a temporary folder; the time to make them does not count.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lab.studies.import_tables import write_nodes
from vrgcn.data.databases.sending import send
from vrgcn.data.databases.source import open_source
from vrgcn.data.databases.url import TableUrl

KINDS = ("parquet", "sqlite", "duckdb")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=500_000)
    parser.add_argument("--edges", type=int, default=4_000_000)
    parser.add_argument("--features", type=int, default=8)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--folder", type=Path, help="where to put the temporary files")
    parser.add_argument("--stream", type=int, help="rows of a table that is only read")
    parser.add_argument("--postgresql", help="address of a server that --stream reads from too")
    given = parser.parse_args()
    if given.stream is not None:
        stream(given.stream, given.folder, given.postgresql)
        return
    print(f"{given.nodes:,} nodes with {given.features} features, {given.edges:,} edges")
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name)
        files = {table: folder / f"{table}.parquet" for table in ("nodes", "edges")}
        write_nodes(files["nodes"], given.nodes, given.features, "number")
        write_edges(files["edges"], given.nodes, given.edges)
        for kind in given.kinds:
            places, size = stored(kind, files, folder)
            flags = ["--nodes", places["nodes"], "--edges", places["edges"]]
            flags += ["--out", str(folder / f"graph-{kind}"), "--ratio", "0.6", "0.2", "0.2"]
            print(f"{kind} ({size / 1e6:,.0f} MB): {last_line(IMPORT, *flags)}", flush=True)


QUERIES = {
    "sqlite": "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows}) "
    "SELECT i, hex(randomblob(150)) AS letters FROM n",
    "duckdb": "SELECT range AS i, repeat(md5(range::VARCHAR), 9) || md5((-range)::VARCHAR)[:12] "
    "AS letters FROM range({rows})",
    "postgresql": "SELECT i, repeat(md5(i::text), 9) || left(md5((-i)::text), 12) AS letters "
    "FROM generate_series(1, {rows}) i",
}
PEAK = """
import re, sys, time
from pathlib import Path

def peak():  # of this process; what `resource` says may be of its parent
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1e6
"""
IMPORT = (
    PEAK
    + """
from vrgcn.cli import main

main(["import", *sys.argv[1:]])
print(f"{time.process_time():.1f} s of CPU, peak memory {peak():.2f} GB")
"""
)
READ = (
    PEAK
    + """
from vrgcn.data.databases.opening import TableOpener
from vrgcn.data.databases.url import TableUrl

with TableOpener(Path(sys.argv[2])) as opener:
    table = opener(TableUrl.parse(sys.argv[1]), "nodes", None)
    start, seen = peak(), 0
    for _ in range(2):
        for _, batch in table.batches(["i", "letters"]):
            seen += batch.nbytes
    print(f"{seen / 2e9:.2f} GB of rows read twice, peak memory {peak():.2f} GB, "
          f"{start:.2f} GB of it before the second batch")
"""
)


def stream(rows: int, beside: Path | None, server: str | None) -> None:
    """Read the rows of a query of each kind of database in a process of its own.

    server: the address of a PostgreSQL server; None to leave it out
    """
    for kind, query in QUERIES.items():
        if kind == "postgresql" and server is None:
            continue
        with tempfile.TemporaryDirectory(dir=beside) as folder:
            address = server if kind == "postgresql" else small_database(kind, folder)
            url = f"{address}#{query.format(rows=rows)}"
            print(f"{kind}: {last_line(READ, url, folder)}", flush=True)


def last_line(code: str, *words: str) -> str:
    """Run Python code in a process of its own; return the last line that it prints."""
    command = [sys.executable, "-c", code, *words]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()[-1]


def small_database(kind: str, folder: str) -> str:
    """Make a database of one row; return its address."""
    address = f"{kind}:///{folder}/small.db"
    with closing(open_source(TableUrl.parse(address), write=True)) as source:
        source.write("one", pa.table({"x": [1]}).to_reader(), append=False)
    return address


def write_edges(file: Path, nodes: int, edges: int) -> None:
    """Write random edges between nodes that are numbers."""
    source, target = np.random.default_rng(1).integers(0, nodes, (2, edges))
    pq.write_table(pa.table({"source": source, "target": target}), file)


def stored(kind: str, files: dict[str, Path], folder: Path) -> tuple[dict[str, str], int]:
    """Put the tables into a database; return where they are, and its bytes."""
    if kind == "parquet":
        size = sum(file.stat().st_size for file in files.values())
        return {table: str(file) for table, file in files.items()}, size
    database = folder / f"tables.{kind}"
    places = {table: f"{kind}:///{database}#{table}" for table in files}
    for table, file in files.items():
        send(file, TableUrl.parse(places[table]), append=False)
    return places, database.stat().st_size


if __name__ == "__main__":
    main()
