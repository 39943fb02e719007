"""Run the league, or what is left of it, and print its tables.

    python -m lab.league --out results/league.jsonl
    python -m lab.league --show --out docs/results/league.jsonl --figure docs/images/league.png

Every (graph, row, split) is a line of the file. What is there is not run again, so a stopped run
goes on. One thread; seconds are those of the processor, which other processes disturb little.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import torch

from lab.harness.records import Record, append_record, read_lines
from lab.league.real_graphs import GRAPHS, data_folder, load
from lab.league.rows import ROWS, Entry, entry_of, run_row
from lab.league.table import draw, markdown, seconds


def main() -> None:
    """Parse the words of the command line, run, print."""
    parser = argparse.ArgumentParser(prog="python -m lab.league")
    parser.add_argument("--out", type=Path, default=Path("results/league.jsonl"))
    parser.add_argument("--graphs", nargs="+", choices=GRAPHS, default=list(GRAPHS))
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--show", action="store_true", help="print what is there, run nothing")
    parser.add_argument("--figure", type=Path, help="draw the picture there")
    given = parser.parse_args()
    if not given.show:
        run(given.out, given.graphs, given.rows, given.splits)
    records = read_lines(given.out)
    if not records:
        sys.exit(f"{given.out} has no records yet")
    print(markdown(records), seconds(records), sep="\n\n")
    if given.figure is not None:
        draw(records, given.figure)


def run(out: Path, graphs: list[str], rows: list[str], splits: int) -> None:
    """Run every row on every split of every graph that has no record yet."""
    folder = data_folder()
    if folder is None:
        sys.exit("the real graphs are not here: name their folder by VRGCN_DATA")
    torch.set_num_threads(1)
    done = {_key(record) for record in read_lines(out)}
    for graph in graphs:
        for split in range(splits):
            entry: Entry | None = None
            for row in rows:
                if (graph, row, split) in done:
                    continue
                entry = entry or entry_of(graph, load(graph, split, folder))
                record = {"graph": graph, "row": row, "split": split, **run_row(row, entry)}
                append_record(out, record)
                score = record["test"]
                print(f"{graph} {split} {row}: {score:.4f}, {record['seconds']} s", flush=True)


def _key(record: Record) -> tuple[str, str, int]:
    return record["graph"], record["row"], record["split"]


if __name__ == "__main__":
    main()
