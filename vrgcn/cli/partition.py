"""`vrgcn partition`: splits a graph into parts, one for each process of `torchrun`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

from vrgcn.cli.command import Options
from vrgcn.cli.early_checks import check_method, check_new
from vrgcn.cli.shared_flags import DataRoot, Dataset, GraphFolder, GraphOrDataset, with_graph
from vrgcn.files.settings import at_least
from vrgcn.files.wording import print_note, printable

if TYPE_CHECKING:
    from vrgcn.distributed.partitioning import PartSize


@dataclass(frozen=True)
class PartitionOptions(Options):
    """Flags of `vrgcn partition`."""

    graph_or_dataset: GraphOrDataset = None
    parts: int = field(kw_only=True)
    """Number of parts."""
    out: Path = field(kw_only=True)
    """Folder to write the parts to, each in a folder of its own; it must not exist yet."""
    method: Literal["auto", "metis", "ldg"] = "auto"
    """Partitioning method. metis cuts the fewest edges and needs memory for several copies of the
    graph; ldg streams it. auto: metis if pymetis is installed and memory is sufficient."""
    dataset: Dataset = None
    graph: GraphFolder = None
    data_root: DataRoot = None
    verify: bool = True
    """Read all files of a graph on disk first and compare their checksums."""

    def __post_init__(self) -> None:
        at_least(1, parts=self.parts)

    def checked(self) -> Self:
        """Resolve the graph; raise if the folder exists or METIS is missing."""
        options = with_graph(self)
        check_new(self.out, "folder")
        check_method(self.method)
        return options


def run(options: PartitionOptions) -> None:
    """Assign nodes to parts, write the parts, and print how good they are."""
    from vrgcn.data.opening import open_graph
    from vrgcn.distributed.partitioning import write_parts
    from vrgcn.graph.partition import partition
    from vrgcn.training.progress import progress_bar

    opened = open_graph(options.dataset, options.graph, options.data_root, verify=options.verify)
    print_note(opened.note)
    graph = opened.graph
    print(graph)
    with progress_bar() as progress:
        task = progress.add_task("dividing the graph", total=1.0)
        assignment = partition(
            graph,
            options.parts,
            options.method,
            tell=lambda done: progress.update(task, completed=done),
        )
        progress.reset(task, description="writing parts", total=options.parts)
        sizes = write_parts(
            graph,
            assignment,
            options.out,
            parts=options.parts,
            scaling=opened.scaling,
            on_part=lambda number: progress.advance(task),
        )
    _print_sizes(sizes)
    print(f"{options.parts} parts written to {printable(options.out)}")


def _print_sizes(sizes: list[PartSize]) -> None:
    """Print a line for each part, and the numbers that decide how well they train together."""
    from vrgcn.pages.terminal import print_table, text_table

    rows = [
        tuple(f"{n:,}" for n in (s.own, s.training, s.edges, s.halo, s.copies))
        for s in sizes[:_SHOWN]
    ]
    columns = ("part", "nodes", "training nodes", "edges", "halo", "copied by others")
    numbered = [(str(number), *row) for number, row in enumerate(rows)]
    print_table(text_table("", columns, numbered))
    if len(sizes) > _SHOWN:
        print(f"and {len(sizes) - _SHOWN} more parts")
    edges, nodes = sum(s.edges for s in sizes), sum(s.own for s in sizes)
    cut, halo = sum(s.cut for s in sizes), sum(s.halo for s in sizes)
    print(
        f"edges cut: {cut / max(edges, 1):.1%}; halo: {halo / nodes:.2f} copies of each node; "
        f"largest part over an equal share: {_balance([s.edges for s in sizes]):.2f} of the edges, "
        f"{_balance([s.training for s in sizes]):.2f} of the training nodes"
    )


_SHOWN = 16


def _balance(loads: list[int]) -> float:
    return max(loads) * len(loads) / max(sum(loads), 1)
