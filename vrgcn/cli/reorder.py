"""`vrgcn reorder`: a graph on disk again, in an order in which neighbours are close."""

from __future__ import annotations

import time

from vrgcn.cli.options import ReorderOptions
from vrgcn.data.reorder import reorder_graph
from vrgcn.training.progress import progress_bar


def run_reorder(options: ReorderOptions) -> None:
    """Reorder and say how close neighbours were before and are now."""
    start = time.perf_counter()
    with progress_bar() as progress:
        task = progress.add_task("reading", total=1.0)
        close = reorder_graph(
            options.graph,
            options.out,
            options.method,
            block=options.block,
            on_piece=lambda what, done: progress.update(task, description=what, completed=done),
        )
    print(
        f"neighbours at most {options.block:,} places away: {close.before:.1%} before, "
        f"{close.after:.1%} now\nwritten to {options.out} in {time.perf_counter() - start:.1f} s"
    )
