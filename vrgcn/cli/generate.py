"""`vrgcn generate`: writes a community graph of any size, or a store of several kinds, to disk."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from vrgcn.cli.command import Options
from vrgcn.cli.early_checks import check_new
from vrgcn.data.generate_spec import GenerateSpec


@dataclass(frozen=True)
class GenerateOptions(GenerateSpec, Options):
    """Flags of `vrgcn generate`."""

    out: Path = Path("generated")
    """Folder of the graph; it must not exist yet."""

    def checked(self) -> Self:
        """Raise if the folder exists already."""
        check_new(self.out)
        return self


def run(options: GenerateOptions) -> None:
    """Generate the graph and print what was written."""
    from vrgcn.data.generate import generate_graph
    from vrgcn.data.generate_kinds import generate_kinds, import_command
    from vrgcn.files.wording import printable
    from vrgcn.training.progress import progress_bar

    start = time.perf_counter()
    with progress_bar() as progress:
        task = progress.add_task("generating", total=1.0)
        generate = generate_kinds if options.kinds else generate_graph
        edges = generate(options, options.out, lambda done: progress.update(task, completed=done))
    what = "edges of 4 relations" if options.kinds else "directed edges"
    print(
        f"{options.nodes:,} nodes and {edges:,} {what} written to "
        f"{printable(options.out)} in {time.perf_counter() - start:.1f} s"
    )
    if options.tables != "none":
        print(printable(import_command(options, options.out)))
