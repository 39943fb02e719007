"""Time and memory of `vrgcn import` from databases, beside the same tables as Parquet files.

    python -m lab.studies.import_database
    python -m lab.studies.import_database --nodes 50000 --edges 400000 --kinds parquet sqlite

Tables are made in a temporary folder; the time to make them does not count.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lab.studies.import_tables import run, write_nodes
from vrgcn.data.databases.sending import send
from vrgcn.data.databases.url import TableUrl

KINDS = ("parquet", "sqlite", "duckdb")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=500_000)
    parser.add_argument("--edges", type=int, default=4_000_000)
    parser.add_argument("--features", type=int, default=8)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--folder", type=Path, help="where to put the temporary files")
    given = parser.parse_args()
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
            seconds, cpu, peak = run(flags)
            print(
                f"{kind} ({size / 1e6:,.0f} MB): {seconds:.1f} s, {cpu:.1f} s of CPU, "
                f"peak memory {peak / 1e9:.2f} GB",
                flush=True,
            )


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
