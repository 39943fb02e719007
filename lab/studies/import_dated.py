"""Time and memory of importing rows with a time of their own: 10M facts, 1M rows.

    python -m lab.studies.import_dated
    python -m lab.studies.import_dated --facts 1000000 --rows 100000

Customers order products over three years, and a row asks at a moment whether one orders within 30
days. Tables are Parquet in a temporary folder; the time to make them does not count.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lab.studies.import_tables import run
from vrgcn.data.store import load_graph

DAY = 86_400
START = 1_640_995_200  # 2022
DAYS = 3 * 365
CHUNK = 1_000_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--facts", type=int, default=10_000_000)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, help="where to put the temporary files")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name)
        write_tables(folder, given.facts, given.rows)
        seconds, cpu, peak = run(flags(folder))
        graph = load_graph(folder / "graph")
        assert graph.dated is not None
        rows = graph.kinds.sizes[graph.dated.rows]
        seen = {name: 0 for path in graph.dated.paths for name in path.last}
        seen |= {name: graph.relations[name].num_edges for name in seen}
        print(
            f"{given.facts:,} facts, {rows:,} rows: {seconds:.1f} s, {cpu:.1f} s of CPU, peak "
            f"memory {peak / 1e9:.2f} GB; {graph.num_edges:,} edges, {sum(seen.values()):,} of "
            f"them to facts that rows see, {sum(seen.values()) / rows:.1f} of a row"
        )


def write_tables(folder: Path, facts: int, rows: int) -> None:
    """Write customers, products, orders and the rows of the task."""
    random = np.random.default_rng(0)
    customers, products = max(rows // 2, 1), max(facts // 500, 1)
    ids = {"customer": np.arange(customers), "product": np.arange(products)}
    for kind, numbers in ids.items():
        values = random.standard_normal((4, len(numbers)))
        columns = {f"x{place}": column for place, column in enumerate(values)}
        pq.write_table(pa.table({"id": numbers} | columns), folder / f"{kind}s.parquet")
    writer = None
    for start in range(0, facts, CHUNK):
        count = min(CHUNK, facts - start)
        table = pa.table(
            {
                "id": np.arange(start, start + count),
                "customer": random.integers(customers, size=count),
                "product": random.integers(products, size=count),
                "date": moments(np.sort(random.random(count)) * count + start, facts),
                "amount": random.gamma(2.0, 20.0, count),
                "channel": np.array(["web", "shop", "phone"])[random.integers(3, size=count)],
            }
        )
        writer = writer or pq.ParquetWriter(folder / "orders.parquet", table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()
    asked = {
        "customer": random.integers(customers, size=rows),
        "at": moments(random.random(rows), 1),
        "orders": random.integers(2, size=rows),
    }
    pq.write_table(pa.table(asked), folder / "asked.parquet")


def moments(shares: np.ndarray, of: int) -> pa.Array:
    """Times from the first to the last of three years."""
    return pa.array((START + shares / of * DAYS * DAY).astype("datetime64[s]"))


def flags(folder: Path) -> list[str | Path]:
    orders = folder / "orders.parquet"
    return [
        *("--nodes", f"customer={folder / 'customers.parquet'}"),
        *(f"product={folder / 'products.parquet'}", f"order={orders}"),
        *("--edges", f"order-by-customer={orders}", f"order-of-product={orders}"),
        *("--dated", "order.date", "--rows", f"customer={folder / 'asked.parquet'}"),
        *("--at", "at", "--label", "orders", "--known-after", "30d"),
        *("--train-until", "2023-12", "--val-until", "2024-06", "--out", folder / "graph"),
    ]


if __name__ == "__main__":
    main()
