"""Run the league, or what is left of it, and print its tables.

    python -m lab.league --out results/league.jsonl
    python -m lab.league --kinds tune --graphs cora ppi --out results/tune.jsonl
    python -m lab.league --show results/league.jsonl results/tune.jsonl
    python -m lab.league --publish results/league.jsonl results/tune.jsonl

Every (graph, row, split) is a line of a file. What is there is not run again, so a stopped run goes
on. Processes that share the work write to files of their own; `--show` takes several. `--publish`
writes docs/results/league.jsonl, docs/results/league.md, the picture and the summary's part from
them. One thread; seconds are those of the processor, which other processes disturb little.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from lab.harness.records import Record, append_record, read_lines
from lab.league.imported import load_imported
from lab.league.picture import draw
from lab.league.publish import ROOT, publish
from lab.league.real_graphs import GRAPHS, Entry, data_folder, entry_of, load
from lab.league.rows import KINDS, ROWS, TUNE_LIMIT, Row, rows, run_row
from lab.league.table import report
from vrgcn.graph.graph import Graph

SPLITS = 3
IMPORTED = ", imported"
Load = Callable[[str, int, Path], Graph]


def main() -> None:
    """Parse the words of the command line, run, print."""
    parser = argparse.ArgumentParser(
        prog="python -m lab.league", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--out", type=Path, default=Path("results/league.jsonl"))
    parser.add_argument("--graphs", nargs="+", choices=GRAPHS, default=list(GRAPHS))
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--rows", nargs="+", choices=ROWS, help="in place of --kinds")
    parser.add_argument("--splits", type=int, default=SPLITS, help="of each graph")
    parser.add_argument("--tune-limit", default=TUNE_LIMIT, help="time of a search")
    parser.add_argument(
        "--imported",
        action="store_true",
        help="import the tables as `vrgcn import` does, of graphs that have tables",
    )
    parser.add_argument("--show", nargs="+", type=Path, help="print these records, run nothing")
    parser.add_argument("--figure", type=Path, help="draw the picture there")
    parser.add_argument(
        "--publish", nargs="+", type=Path, help="write the records and pages of docs from these"
    )
    given = parser.parse_args()
    shown = given.publish or given.show
    if not shown:
        table = rows(given.tune_limit)
        names = given.rows or [name for name, row in table.items() if row.kind in given.kinds]
        chosen = {name: table[name] for name in names}
        graphs = [name for name in given.graphs if GRAPHS[name].tables or not given.imported]
        run(given.out, graphs, chosen, given.splits, imported=given.imported)
        shown = [given.out]
    records = [record for file in shown for record in read_lines(file)]
    if not records:
        sys.exit(f"{' '.join(map(str, shown))}: no records yet")
    print(report(records))
    if given.figure is not None:
        draw(records, given.figure)
    if given.publish:
        publish(records, ROOT)


def run(
    out: Path, graphs: Sequence[str], chosen: dict[str, Row], splits: int, *, imported: bool = False
) -> None:
    """Run every row on every split of every graph that has no record yet."""
    folder = data_folder()
    if folder is None:
        sys.exit("the real graphs are not here: name their folder by VRGCN_DATA")
    torch.set_num_threads(1)
    done = {_key(record) for record in read_lines(out)}
    read: Load = load_imported if imported else load
    failed: list[str] = []
    for graph in graphs:
        for split in range(splits):
            entry: Entry | None = None
            for name, row in chosen.items():
                key = (graph + IMPORTED * imported, name, split)
                if key in done or not row.available:
                    continue
                entry = entry or entry_of(graph, read(graph, split, folder))
                record = dict(zip(("graph", "row", "split"), key, strict=True))
                try:
                    record |= run_row(row, entry)
                except (ValueError, FloatingPointError, MemoryError) as error:
                    # Hours of other rows follow; it is tried again by the next run.
                    failed.append(f"{key[0]} {split} {name}: {error}")
                    print(f"failed: {failed[-1]}", file=sys.stderr, flush=True)
                    continue
                append_record(out, record)
                print(
                    f"{key[0]} {split} {name}: {record['test']:.4f}, {record['cpu_seconds']} s",
                    flush=True,
                )
    if failed:
        sys.exit("\n".join(["failed, and without a record:", *failed]))


def _key(record: Record) -> tuple[str, str, int]:
    return record["graph"], record["row"], record["split"]


if __name__ == "__main__":
    main()
