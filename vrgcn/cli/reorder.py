"""`vrgcn reorder`: a graph on disk again, in an order in which neighbours are close."""

from __future__ import annotations

import time

from vrgcn.cli.options import ReorderOptions
from vrgcn.data.reorder import reorder_graph
from vrgcn.files.printable import printable
from vrgcn.training.progress import progress_bar


def run_reorder(options: ReorderOptions) -> None:
    """Reorder and say how close neighbours were before and are now."""
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
