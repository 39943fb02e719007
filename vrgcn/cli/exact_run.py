"""Flags that `predict`, `recommend` and `embed` share: a run, a graph, some of its nodes."""

from __future__ import annotations

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
from vrgcn.data.sources import find_source
from vrgcn.files.mistakes import InputError
from vrgcn.files.writing import check_suffix
from vrgcn.runs.run import check_run, parts_of_run

if TYPE_CHECKING:
    pass


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
    loads_torch: ClassVar[bool] = True

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


def too_large(options: ExactOptions, what: str) -> str:
    """Advice for when there is not enough memory."""
    lines = [f"there is not enough memory to {what}. What takes less:"]
    if options.memory == "ram":
        lines.append("  --memory disk: hidden layers and scaled features go to files beside --out")
    if options.nodes is None:
        lines.append("  --nodes FILE with some of the nodes: only what they depend on is computed")
    lines.append("  --threads 1: each thread works on a part of its own")
    return "\n".join(lines)
