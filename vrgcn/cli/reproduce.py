"""`vrgcn reproduce`: the paper's experiments, run by `lab`."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from vrgcn.cli.command import Options
from vrgcn.cli.flags import Positional, flags_of
from vrgcn.cli.lab import open_lab
from vrgcn.cli.shared_flags import Threads
from vrgcn.files.mistakes import InputError
from vrgcn.files.settings import at_least

ExperimentName = Literal[
    "table1", "table2", "table3", "table4",
    "fig-loss", "fig-accuracy", "fig-testing", "fig-gradient", "fig-correlation", "all",
]  # fmt: skip


@dataclass(frozen=True)
class ReproduceOptions(Options):
    """Flags of `vrgcn reproduce`."""

    what: Positional[tuple[ExperimentName, ...]]
    """Tables and figures of the paper, or all of them."""
    datasets: tuple[str, ...] | None = None
    """Data sets; `vrgcn datasets` lists them. None: all available ones of each experiment."""
    runs: int | None = None
    """Runs with different seeds. None: as many as in the paper."""
    epochs: int | None = None
    """Maximum number of epochs of a run. None: as many as in the paper."""
    quick: bool = False
    """Run everything at its smallest size, to check that it works; its figures mean nothing."""
    out: Path | None = None
    """Folder of the records, figures and report.html. A stopped run resumes from there. None:
    results, or results-quick with --quick."""
    data_root: Path | None = None
    """Folder with the raw files of named data sets. None: $VRGCN_DATA, or else data."""
    threads: Threads = None

    def __post_init__(self) -> None:
        if not self.what:
            raise InputError("say what to reproduce: table1, fig-loss, ..., or all")
        at_least(1, runs=self.runs, epochs=self.epochs, threads=self.threads)


def run(options: ReproduceOptions) -> None:
    """Run, write the page, print the verdicts on the requested tables and figures."""
    lab = open_lab("reproduce", "lab.paper.reproduce")
    lab.run_reproduce(**vars(options), command=command(options))


def command(options: ReproduceOptions) -> str:
    """Return the command line that gives these options."""
    words = ["vrgcn", "reproduce", *options.what]
    if options.datasets:
        words += ["--datasets", *options.datasets]
    for flag in flags_of(ReproduceOptions):
        value = getattr(options, flag.name)
        if value is not None and not flag.several and flag.kind is not bool:
            words += [flag.flag, str(value)]
    return shlex.join([*words, *(["--quick"] if options.quick else [])])
