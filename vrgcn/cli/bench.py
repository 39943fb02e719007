"""`vrgcn bench`: training, inference and start-up, measured by `lab`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from vrgcn.cli.command import Options
from vrgcn.cli.lab import open_lab
from vrgcn.cli.shared_flags import DataRoot
from vrgcn.files.mistakes import InputError
from vrgcn.files.settings import at_least

SectionName = Literal[
    "epoch",
    "accuracy",
    "deep",
    "step",
    "growth",
    "peers",
    "inference",
    "histories",
    "sparse",
    "startup",
]


@dataclass(frozen=True)
class BenchOptions(Options):
    """Flags of `vrgcn bench`."""

    sections: tuple[SectionName, ...] = get_args(SectionName)
    """Sections to measure. epoch: steps against the MLP; accuracy: time to a validation score, peak
    memory; deep: three and four layers; step: where the time goes; growth: cost against graph and
    model sizes; peers: PyG; inference: exact outputs of all nodes; histories: 16-bit tables;
    sparse: wide sparse features against 64 dense columns; startup: --help, mistakes on the command
    line, imports."""
    dataset: str = "reddit-like"
    """A graph by name; `vrgcn datasets` lists them."""
    data_root: DataRoot = None
    out: Path = Path("results/bench.json")
    """File to write the numbers to."""
    quick: bool = False
    """Use a tiny graph and a few steps, to check that everything runs; its figures mean nothing."""
    check: bool = False
    """Exit with 1 if a measured value misses its limit."""
    threads: int = 2
    """CPU threads."""
    turns: int | None = None
    """Rounds in which the compared programs take turns. None: 15, quick 2."""
    target: float | None = None
    """Validation score to reach. None: 0.96, quick 0.8."""
    runs: int | None = None
    """Runs to the target, each with its own seed. None: 1."""
    epochs: int | None = None
    """Epochs after which a run to the target gives up. None: 10, quick 3."""
    slow_epochs: int | None = None
    """The same for NS (10, 25) and exact, whose epochs take longer. None: 4, quick 3."""
    evaluations: int | None = None
    """Validations per epoch. None: 4, quick 2."""
    average_weights: bool = True
    """Score averaged weights in runs to the target, as `vrgcn train` does by default."""
    history_dtype: Literal["float32", "float16", "bfloat16"] = "float16"
    """Precision of the histories in all sections except `histories`, which compares precisions."""
    seeds: int | None = None
    """Runs for the accuracy of each precision of the histories. None: 10, quick 2."""

    def __post_init__(self) -> None:
        at_least(1, threads=self.threads, turns=self.turns, runs=self.runs, epochs=self.epochs)
        at_least(1, slow_epochs=self.slow_epochs, evaluations=self.evaluations)
        at_least(2, seeds=self.seeds)
        if self.target is not None and not 0 < self.target <= 1:
            raise InputError(f"target is a score above 0 and at most 1, not {self.target}")
        if not self.sections:
            raise InputError("sections: name at least one")


def run(options: BenchOptions) -> None:
    """Measure, print and write the results; with --check, exit with 1 if a limit was missed."""
    flags = dict(vars(options))
    check = flags.pop("check")
    met = open_lab("bench", "lab.bench.command").run_bench(**flags)
    if check and not met:
        sys.exit(1)
