"""`vrgcn import`: tables to a graph on disk, and what was read."""

from __future__ import annotations

import time

from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

from vrgcn.cli.options import ImportOptions
from vrgcn.data.tables import import_tables
from vrgcn.data.tables.wording import counted
from vrgcn.files.memory import memory_advice
from vrgcn.files.printable import printable
from vrgcn.pages.terminal import text_table
from vrgcn.training.progress import progress_bar

_TOO_LARGE = """there is not enough memory to import these tables. What takes less:
  --drop COLUMN for columns that are not needed: rows are read some megabytes at a time
  ids that are whole numbers: the ids and labels of all nodes stay in memory, texts take most
  a higher limit, where the process has one (ulimit -v)
Features, and edges but for a part at a time, do not have to fit."""


def run_import(options: ImportOptions) -> None:
    """Import as the options say and print what was read."""
    start = time.perf_counter()
    with progress_bar(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        TimeElapsedColumn(),
    ) as progress:
        task = progress.add_task("reading", total=None)

        def on_rows(name: str, rows: int) -> None:
            progress.update(task, description=f"{printable(name)}: {counted(rows, 'row')}")

        def on_plan(title: str, rows: list[tuple[str, str, str]]) -> None:
            headings = ("column", "looks like", "becomes")
            progress.console.print(text_table(title, headings, rows, names=3), "")

        with memory_advice(_TOO_LARGE):
            summary = import_tables(options, on_rows, on_plan)
    took = time.perf_counter() - start
    print(f"{summary}\n\nwritten to {printable(summary.out)} in {took:.1f} s")
