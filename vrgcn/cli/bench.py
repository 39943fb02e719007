"""`vrgcn bench`: training, inference and start-up, measured by `lab`."""

from __future__ import annotations

import sys

from vrgcn.cli.lab import open_lab
from vrgcn.cli.options import BenchOptions


def run_bench(options: BenchOptions) -> None:
    """Measure, print, write; with --check, exit with 1 if a limit was missed."""
    flags = dict(vars(options))
    check = flags.pop("check")
    met = open_lab("bench", "lab.bench.command").run_bench(**flags)
    if check and not met:
        sys.exit(1)
