"""Time and memory of `vrgcn import`: 1M nodes with 64 features, 10M edges.

    python -m lab.studies.import_tables
    python -m lab.studies.import_tables --nodes 100000 --edges 1000000 --kinds parquet --ids number
    python -m lab.studies.import_tables --store

With --store the tables are those of `vrgcn generate --kinds`: three kinds of nodes, four relations.

Tables are made in a temporary folder; the time to make them does not count.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq

from vrgcn.data.generate_kinds import generate_kinds, import_command
from vrgcn.data.generate_spec import GenerateSpec

CHUNK = 100_000
CLASSES = np.array(["art", "biology", "chemistry", "dance", "economics"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=10_000_000)
    parser.add_argument("--features", type=int, default=64)
    parser.add_argument("--ids", choices=["text", "number"], default="text")
    parser.add_argument(
        "--kinds", nargs="+", choices=["csv", "parquet"], default=["csv", "parquet"]
    )
    parser.add_argument("--store", action="store_true", help="several kinds and relations")
    parser.add_argument("--folder", type=Path, help="where to put the temporary files")
    given = parser.parse_args()
    print(f"{given.nodes:,} nodes with {given.features} features, {given.edges:,} edges")
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name)
        if given.store:
            for kind in given.kinds:
                import_store(folder, given.nodes, given.edges, given.features, kind)
            return
        write_edges(folder / "edges.csv", given.nodes, given.edges, given.ids)
        for kind in given.kinds:
            nodes = folder / f"nodes.{kind}"
            write_nodes(nodes, given.nodes, given.features, given.ids)
            flags = ["--nodes", nodes, "--edges", folder / "edges.csv"]
            flags += ["--out", folder / f"graph-{kind}", "--ratio", "0.6", "0.2", "0.2"]
            seconds, cpu, peak = run(flags)
            size = (nodes.stat().st_size + (folder / "edges.csv").stat().st_size) / 1e6
            print(
                f"nodes.{kind} and edges.csv ({size:,.0f} MB): {seconds:.1f} s, "
                f"{cpu:.1f} s of CPU, peak memory {peak / 1e9:.2f} GB"
            )


def node_ids(numbers: np.ndarray, kind: str) -> pa.Array:
    ids = pa.array(numbers)
    if kind == "number":
        return ids
    return pc.binary_join_element_wise("node", ids.cast(pa.string()), "-")


def write_nodes(file: Path, nodes: int, width: int, ids: str) -> None:
    random = np.random.default_rng(0)
    order = random.permutation(nodes)
    writer: Any = None
    for start in range(0, nodes, CHUNK):
        numbers = order[start : start + CHUNK]
        features = random.standard_normal((width, len(numbers)), dtype=np.float32)
        table = pa.table(
            {"id": node_ids(numbers, ids)}
            | {f"f{i}": column for i, column in enumerate(features)}
            | {"label": CLASSES[random.integers(0, len(CLASSES), len(numbers))]}
        )
        if writer is None:
            make = pq.ParquetWriter if file.suffix == ".parquet" else arrow_csv.CSVWriter
            writer = make(file, table.schema)
        writer.write_table(table)
    writer.close()


def write_edges(file: Path, nodes: int, edges: int, ids: str) -> None:
    random = np.random.default_rng(1)
    writer: Any = None
    for start in range(0, edges, 10 * CHUNK):
        ends = random.integers(0, nodes, (2, min(10 * CHUNK, edges - start)))
        table = pa.table({"source": node_ids(ends[0], ids), "target": node_ids(ends[1], ids)})
        writer = writer or arrow_csv.CSVWriter(file, table.schema)
        writer.write_table(table)
    writer.close()


def import_store(folder: Path, nodes: int, edges: int, features: int, suffix: Any) -> None:
    """Import a generated store of three kinds and four relations, and print what it took."""
    spec = GenerateSpec(
        nodes=nodes, degree=2 * edges / nodes, features=features, kinds=True, tables=suffix
    )
    tables = folder / f"tables-{suffix}"
    generate_kinds(spec, tables)
    size = sum(file.stat().st_size for file in tables.iterdir()) / 1e6
    command = import_command(spec, tables).replace("GRAPH", str(folder / f"store-{suffix}"))
    seconds, cpu, peak = run(shlex.split(command)[2:])
    print(
        f"7 tables in {suffix} ({size:,.0f} MB): {seconds:.1f} s, {cpu:.1f} s of CPU, peak memory "
        f"{peak / 1e9:.2f} GB"
    )


def run(flags: list[Any]) -> tuple[float, float, int]:
    """Import in a separate process; return seconds, seconds of CPU, and peak resident bytes."""
    command = [sys.executable, "-c", "from vrgcn.cli import main; main()", "import", *flags]
    start = time.perf_counter()
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    if status:
        raise SystemExit("the import failed")
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


if __name__ == "__main__":
    main()
