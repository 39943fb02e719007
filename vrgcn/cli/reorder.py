"""`vrgcn reorder`: rewrites a graph on disk in an order in which neighbours are close."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

from vrgcn.cli.command import Options
from vrgcn.cli.early_checks import check_method, check_new
from vrgcn.cli.flags import Positional
from vrgcn.data.sources import check_graph
from vrgcn.files.settings import at_least


@dataclass(frozen=True)
class ReorderOptions(Options):
    """Flags of `vrgcn reorder`."""

    graph: Positional[Path]
    """The folder of a graph, as `vrgcn import` or `vrgcn generate` wrote it."""
    out: Path
    """Folder of the new graph; it must not exist yet."""
    method: Literal["auto", "metis", "ldg"] = "auto"
    """Method that finds the parts. metis: fewest edges between them, in memory (needs pymetis);
    ldg: in passes over the files; auto: METIS if the graph to divide fits in memory."""
    block: int = 1024
    """Approximate number of nodes in a block. Neighbours are mostly in one block, or in blocks near
    each other."""

    def __post_init__(self) -> None:
        at_least(1, block=self.block)

    def checked(self) -> Self:
        """Raise if the graph does not exist, if the folder does, or if METIS is missing."""
        check_graph(self.graph)
        check_new(self.out)
        check_method(self.method)
        return self


def run(options: ReorderOptions) -> None:
    """Reorder and print how close neighbours were before and are now."""
    from vrgcn.data.reorder import reorder_graph
    from vrgcn.files.wording import printable
    from vrgcn.training.progress import progress_bar

    start = time.perf_counter()
    with progress_bar() as progress:
        task = progress.add_task("reading", total=1.0)

        def tell(what: str, done: float) -> None:
            if progress.tasks[0].description != what:  # a new task; the old speed does not apply
                progress.reset(task, description=what)
            progress.update(task, completed=done)

        close = reorder_graph(
            options.graph,
            options.out,
            options.method,
            block=options.block,
            on_piece=tell,
        )
    print(
        f"neighbours at most {options.block:,} places away: {close.before:.1%} before, "
        f"{close.after:.1%} now\nwritten to {printable(options.out)} in "
        f"{time.perf_counter() - start:.1f} s"
    )
