"""`vrgcn partition`: a graph in parts, one for each process of `torchrun`."""

from __future__ import annotations

from vrgcn.cli.notes import print_note
from vrgcn.cli.options import PartitionOptions
from vrgcn.data.opening import open_graph
from vrgcn.distributed.partitioning import PartSize, write_parts
from vrgcn.files.printable import printable
from vrgcn.graph.partition import partition
from vrgcn.pages.terminal import print_table, text_table
from vrgcn.training.progress import progress_bar


def run_partition(options: PartitionOptions) -> None:
    """Assign, write, and tell how good the parts are."""
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
    """A line for each part, and what decides how well they train together."""
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
