"""`vrgcn reorder`: a graph on disk again, in an order in which neighbours are close."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

from vrgcn.cli.command import Options
from vrgcn.cli.early_checks import check_method, check_new
from vrgcn.cli.flags import Positional
from vrgcn.data.sources import check_graph
from vrgcn.training.config import at_least


@dataclass(frozen=True)
class ReorderOptions(Options):
    """Flags of `vrgcn reorder`."""

    graph: Positional[Path]
    """The folder of a graph, as `vrgcn import` or `vrgcn generate` wrote it."""
    out: Path
    """Folder of the new graph; it must not exist yet."""
    method: Literal["auto", "metis", "ldg"] = "auto"
    """How parts are found. metis: fewest edges between them, in memory (needs pymetis); ldg: in
    passes over the files; auto: METIS wherever what is divided fits in memory."""
    block: int = 1024
    """Nodes of a block, about, whose neighbours are mostly in it or near."""

    def __post_init__(self) -> None:
        at_least(1, block=self.block)

    def checked(self) -> Self:
        """Refuse a graph that is not there, a folder that is, and METIS where it is missing."""
        check_graph(self.graph)
        check_new(self.out)
        check_method(self.method)
        return self


def run(options: ReorderOptions) -> None:
    """Reorder and say how close neighbours were before and are now."""
    from vrgcn.data.reorder import reorder_graph
    from vrgcn.files.printable import printable
    from vrgcn.training.progress import progress_bar

    start = time.perf_counter()
    with progress_bar() as progress:
        task = progress.add_task("reading", total=1.0)

        def tell(what: str, done: float) -> None:
            if progress.tasks[0].description != what:  # whose speed says nothing of this one's
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
