"""Code that `predict` and `embed` share: a run, a graph, some of its nodes, exact sweeps over
them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING, ClassVar, Self

from vrgcn.cli.command import Options
from vrgcn.cli.early_checks import check_file, check_new
from vrgcn.cli.shared_flags import (
    Device,
    Memory,
    OtherDataset,
    OtherGraph,
    RunDataRoot,
    Threads,
    TrainedRun,
)
from vrgcn.data.databases.url import Place, TableUrl
from vrgcn.data.node_lists import listed_nodes
from vrgcn.data.sources import find_source
from vrgcn.files.destination import check_suffix
from vrgcn.files.mistakes import InputError
from vrgcn.files.printable import print_note
from vrgcn.runs.run import check_run, parts_of_run

if TYPE_CHECKING:
    from torch import Tensor

    from vrgcn.data.id_columns import IdColumns
    from vrgcn.graph.graph import Graph
    from vrgcn.inference.sweeps import Outputs
    from vrgcn.runs.run import Run

ALL = "all"  # in place of a kind: nodes of all kinds


@dataclass(frozen=True)
class ExactOptions(Options):
    """Exact outputs of a trained model on all nodes of a graph, or on some of them."""

    run: TrainedRun
    out: Place
    """File or table to write."""
    append: bool = False
    """Add the rows to the table of --out, which exists already and has their columns."""
    dataset: OtherDataset = None
    graph: OtherGraph = None
    data_root: RunDataRoot = None
    nodes: Path | None = None
    """Text file with one node id per line: use only these nodes, in this order. None: all nodes."""
    memory: Memory = "ram"
    device: Device = "cpu"
    threads: Threads = None

    # True if the command also accepts a graph in parts.
    takes_parts: ClassVar[bool] = False

    def checked(self) -> Self:
        """Raise if the run, the graph or the nodes file does not exist, or if the output file
        does."""
        check_run(self.run)
        find_source(self.dataset, self.graph, needed=False, parts=self.takes_parts)
        if self.nodes is not None:
            check_file(self.nodes, "--nodes")
        if isinstance(self.out, TableUrl):
            self._check_table(self.out)
        elif self.append:
            raise InputError(f"--append adds to a table of a database, and {self.out} is a file")
        else:
            check_suffix(self.out, (".parquet", ".csv", ".npy"))
            check_new(self.out)
        return self

    def _check_table(self, out: TableUrl) -> None:
        """Raise if the table of --out cannot be written."""
        from vrgcn.data.databases.sending import check_destination

        if parts_of_run(self.run, self.dataset, self.graph) is not None:
            raise InputError(
                f"--out: {out}: predictions of a graph in parts go to a file; name one"
            )
        check_destination(out, append=self.append)

    @property
    def folder(self) -> Path:
        """The folder of the file to write, for temporary files."""
        return self.out.parent if isinstance(self.out, Path) else Path(gettempdir())


@dataclass(frozen=True)
class Sweeping:
    """graph: as the model takes it; nodes: those asked for, None for all; count: of them
    ids: the columns that name them in a file
    """

    graph: Graph
    nodes: Tensor | None
    ids: IdColumns
    sweeps: Outputs

    @property
    def count(self) -> int:
        return self.graph.num_nodes if self.nodes is None else len(self.nodes)


@contextmanager
def opened_sweeps(run: Run, options: ExactOptions, of: str | None) -> Iterator[Sweeping]:
    """Yield the sweeps that the options ask for; temporary files are deleted afterwards.

    of: kind of nodes, or ALL; None: the kind that has labels, in a graph of several kinds
    """
    from vrgcn.data.id_columns import IdColumns
    from vrgcn.files.scratch import table_folder
    from vrgcn.inference.predict import exact_sweeps
    from vrgcn.runs.run import open_run_graph
    from vrgcn.training.progress import filling_bars

    with table_folder(options.memory, options.folder) as folder:
        opened = open_run_graph(
            run,
            options.dataset,
            options.graph,
            options.data_root,
            folder,
            filling_bars(),
            scored=False,
        )
        print_note(opened.note)
        graph = opened.graph
        kind = asked_kind(graph, of)
        if options.nodes is None:
            nodes = None if kind is None else graph.kinds.nodes(kind)
        elif kind is None and graph.kinds.named:
            raise InputError(
                f"--nodes: ids belong to a kind; say which with --of, one of "
                f"{', '.join(graph.kinds.names)}"
            )
        else:
            nodes = listed_nodes(options.nodes, graph.names, graph.num_nodes, kind)
        sweeps = exact_sweeps(run.saved, graph, directory=folder)
        yield Sweeping(graph, nodes, IdColumns(graph.names, kind), sweeps)


def asked_kind(graph: Graph, of: str | None) -> str | None:
    """Return the kind of nodes that --of asks for; None for nodes of all kinds."""
    if not graph.kinds.named:
        if of not in (None, ALL):
            raise InputError(f"--of {of}: the graph has no kinds of nodes; leave it out")
        return None
    if of == ALL and ALL not in graph.kinds.names:
        return None
    try:
        graph.kinds.check(of or graph.kinds.target or "")
    except ValueError as error:
        raise InputError(f"--of: {error}") from None
    return of or graph.kinds.target


@contextmanager
def shown(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Yield a function that advances a progress bar on the terminal."""
    from vrgcn.training.progress import progress_bar

    with progress_bar() as progress:
        task = progress.add_task(what, total=total)
        yield lambda done: progress.advance(task, done)


def too_large(options: ExactOptions, what: str) -> str:
    """Advice for when there is not enough memory."""
    lines = [f"there is not enough memory to {what}. What takes less:"]
    if options.memory == "ram":
        lines.append("  --memory disk: hidden layers and scaled features go to files beside --out")
    if options.nodes is None:
        lines.append("  --nodes FILE with some of the nodes: only what they depend on is computed")
    lines.append("  --threads 1: each thread works on a part of its own")
    return "\n".join(lines)
