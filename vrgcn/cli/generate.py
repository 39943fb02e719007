"""`vrgcn generate`: a community graph of any size, on disk."""

from __future__ import annotations

import time

from vrgcn.cli.options import GenerateOptions
from vrgcn.data.generate import generate_graph
from vrgcn.files.printable import printable
from vrgcn.training.progress import progress_bar


def run_generate(options: GenerateOptions) -> None:
    """Generate and say what was written."""
    start = time.perf_counter()
    with progress_bar() as progress:
        task = progress.add_task("generating", total=1.0)
        edges = generate_graph(
            options, options.out, lambda done: progress.update(task, completed=done)
        )
    print(
        f"{options.nodes:,} nodes and {edges:,} directed edges written to "
        f"{printable(options.out)} in {time.perf_counter() - start:.1f} s"
    )
