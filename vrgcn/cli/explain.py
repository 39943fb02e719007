"""`vrgcn explain`: what the predictions of some nodes depend on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

from vrgcn.cli.command import Options
from vrgcn.cli.shared_flags import Device, Memory, Threads, TrainedRun
from vrgcn.files.mistakes import InputError
from vrgcn.files.settings import at_least
from vrgcn.files.wording import printable
from vrgcn.files.writing import ENDINGS, check_suffix, check_writable
from vrgcn.runs.folder import read_config
from vrgcn.runs.run import check_explained, check_run


@dataclass(frozen=True)
class ExplainOptions(Options):
    """Flags of `vrgcn explain`."""

    loads_torch: ClassVar[bool] = True

    run: TrainedRun
    nodes: tuple[str, ...] = ()
    """Ids of the nodes to explain."""
    of: str | None = None
    """Kind of the nodes, in a graph of several kinds. None: the kind that has labels."""
    out: Path | None = None
    """File to write: .html (pictures and tables), .png, .svg or .pdf (only the picture), .json (all
    numbers). None: print tables only."""
    top: int = 10
    """Rows of each table."""
    most: int = 30
    """How many edges, neighbours and columns to leave out, one by one: those with the largest
    weights."""
    memory: Memory = "ram"
    device: Device = "cpu"
    threads: Threads = None

    def checked(self) -> Self:
        """Raise if the run does not exist or predicts pairs, or no node is named."""
        check_run(self.run)
        at_least(1, top=self.top, most=self.most)
        if not self.nodes:
            raise InputError(
                "--nodes: name the nodes to explain by their ids, such as --nodes 7 12"
            )
        check_explained(self.run, read_config(self.run))
        if self.out is not None:
            check_suffix(self.out, ENDINGS)
            check_writable(self.out.parent)
        return self


def run(options: ExplainOptions) -> None:
    """Print the explanations, and write them where a file is named."""
    from vrgcn.pages.explanation import explain, print_explanation

    explanations = explain(
        options.run,
        options.nodes,
        of=options.of,
        most=options.most,
        memory=options.memory,
        device=options.device,
        threads=options.threads,
        out=options.out,
        top=options.top,
    )
    for explanation in explanations:
        print_explanation(explanation, options.top)
    if options.out is not None:
        print(f"written to {printable(options.out)}")
