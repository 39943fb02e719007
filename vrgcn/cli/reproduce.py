"""`vrgcn reproduce`: the paper's experiments, run by `lab`."""

from __future__ import annotations

import shlex

from vrgcn.cli.lab import open_lab
from vrgcn.cli.options import ReproduceOptions


def run_reproduce(options: ReproduceOptions) -> None:
    """Run, write the page, print the verdicts of what was asked for."""
    lab = open_lab("reproduce", "lab.paper.reproduce")
    lab.run_reproduce(**vars(options), command=command(options))


def command(options: ReproduceOptions) -> str:
    """The command line that asks for these options."""
    words = ["vrgcn", "reproduce", *options.what]
    if options.datasets:
        words += ["--datasets", *options.datasets]
    for flag in ("runs", "epochs", "out", "data_root", "threads"):
        value = getattr(options, flag)
        if value is not None:
            words += [f"--{flag.replace('_', '-')}", str(value)]
    return shlex.join([*words, *(["--quick"] if options.quick else [])])
