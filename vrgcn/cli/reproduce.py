"""`vrgcn reproduce`: the paper's experiments, their page, and the verdicts on its claims."""

from __future__ import annotations

import shlex
import time
from pathlib import Path

from lab.paper.experiment import Choice
from lab.paper.page import PAGE
from lab.paper.reproduce import EXPERIMENTS, reproduce
from lab.paper.settings import absent, setting
from vrgcn.cli.options import ReproduceOptions
from vrgcn.data import root_folder
from vrgcn.pages.page import VERDICTS
from vrgcn.training.wording import seconds_text


def run_reproduce(options: ReproduceOptions) -> None:
    """Run, write the page, print the verdicts of what was asked for."""
    start = time.perf_counter()
    folder = options.out or Path("results-quick" if options.quick else "results")
    choice = Choice(
        options.datasets,
        options.runs,
        options.quick,
        options.data_root,
        options.threads,
        options.epochs,
    )
    names = list(EXPERIMENTS) if "all" in options.what else list(dict.fromkeys(options.what))
    _check_datasets(choice)
    for verdicts in reproduce(names, choice, folder, command(options)).values():
        for verdict in verdicts:
            print(f"{VERDICTS[verdict.holds]}: {verdict.text}")
    print(f"report: {folder / PAGE}")
    print(f"{seconds_text(time.perf_counter() - start)} in all")


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


def _check_datasets(choice: Choice) -> None:
    """Refuse data sets that were asked for and are not here; say which of the others are not."""
    for name in choice.datasets or ():
        setting(name)
    missing = absent(choice)
    if missing and choice.datasets:
        raise ValueError(
            f"--datasets: the files of {', '.join(missing)} are not in "
            f"{root_folder(choice.data_root)}; say with --data-root where they are, or leave "
            f"{'it' if len(missing) == 1 else 'them'} out (`vrgcn datasets` lists them)"
        )
    if missing:
        print(
            f"left out, their files are not here: {', '.join(missing)} "
            "(`vrgcn datasets` says where they are looked for)"
        )
