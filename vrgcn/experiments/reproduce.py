"""`vrgcn reproduce`: run the units that have no record yet, then write the page of all records.

A new experiment is a module that exports EXPERIMENT and a line in `EXPERIMENTS`; its name goes into
`ReproduceOptions.what` too, which the command line reads without loading anything.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Sequence
from pathlib import Path

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from vrgcn.cli.options import ReproduceOptions
from vrgcn.data import data_root
from vrgcn.engine.devices import use_threads
from vrgcn.experiments.experiment import Choice, Experiment, Unit
from vrgcn.experiments.page import write_report
from vrgcn.experiments.records import append_record, missing_units, read_records
from vrgcn.experiments.settings import absent, setting
from vrgcn.pages.destination import check_out_folder
from vrgcn.pages.figures import check_drawing
from vrgcn.pages.page import VERDICTS
from vrgcn.pages.progress import progress_bar, seconds_text

# name: module, in the order of the report
EXPERIMENTS = {
    "table1": "vrgcn.experiments.table1",
    "table2": "vrgcn.experiments.table2",
    "table3": "vrgcn.experiments.table3",
    "table4": "vrgcn.experiments.table4",
    "fig-loss": "vrgcn.experiments.fig_loss",
    "fig-accuracy": "vrgcn.experiments.fig_accuracy",
    "fig-testing": "vrgcn.experiments.fig_testing",
    "fig-gradient": "vrgcn.experiments.fig_gradient",
    "fig-correlation": "vrgcn.experiments.fig_correlation",
}


def run_reproduce(options: ReproduceOptions) -> None:
    """Run, write the report, print the verdicts of what was asked for."""
    start = time.perf_counter()
    folder = options.out or Path("results-quick" if options.quick else "results")
    check_drawing()
    check_out_folder(folder)
    use_threads(options.threads)
    choice = Choice(
        options.datasets, options.runs, options.quick, options.data_root, options.threads
    )
    names = list(EXPERIMENTS) if "all" in options.what else list(dict.fromkeys(options.what))
    _check_datasets(choice)
    _run([find_experiment(name) for name in names], choice, folder)
    experiments = [find_experiment(name) for name in EXPERIMENTS]
    verdicts = write_report(experiments, folder, choice.quick, command(options))
    for name in names:
        for verdict in verdicts.get(name, []):
            print(f"{VERDICTS[verdict.holds]}: {verdict.text}")
    print(f"report: {folder / 'report.html'}")
    print(f"{seconds_text(time.perf_counter() - start)} in all")


def find_experiment(name: str) -> Experiment:
    """The experiment of a name, its module imported now."""
    experiment: Experiment = importlib.import_module(EXPERIMENTS[name]).EXPERIMENT
    return experiment


def command(options: ReproduceOptions) -> str:
    """The command line that asks for these options."""
    words = ["vrgcn reproduce", *options.what]
    if options.datasets:
        words += ["--datasets", *options.datasets]
    for flag in ("runs", "out", "data_root", "threads"):
        value = getattr(options, flag)
        if value is not None:
            words += [f"--{flag.replace('_', '-')}", str(value)]
    return " ".join([*words, *(["--quick"] if options.quick else [])])


def _check_datasets(choice: Choice) -> None:
    """Refuse data sets that were asked for and are not here; say which of the others are not."""
    for name in choice.datasets or ():
        setting(name)
    missing = absent(choice)
    if missing and choice.datasets:
        raise ValueError(
            f"--datasets: the files of {', '.join(missing)} are not in "
            f"{data_root(choice.data_root)}; say with --data-root where they are, or leave "
            f"{'it' if len(missing) == 1 else 'them'} out (`vrgcn datasets` lists them)"
        )
    if missing:
        print(
            f"left out, their files are not here: {', '.join(missing)} "
            "(`vrgcn datasets` says where they are looked for)"
        )


def _run(experiments: Sequence[Experiment], choice: Choice, folder: Path) -> None:
    """All units without a record, experiment by experiment."""
    todo: list[tuple[Experiment, list[Unit]]] = []
    for experiment in experiments:
        units = experiment.units(choice)
        missing = missing_units(units, read_records(_records(experiment, folder)))
        todo.append((experiment, missing))
        there = len(units) - len(missing)
        note = "" if units else "; none of its data sets was asked for or is here"
        print(f"{experiment.name}: {len(missing)} units to run, {there} there already{note}")
    total = sum(len(units) for _, units in todo)
    with progress_bar(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    ) as progress:
        console = progress.console
        task = progress.add_task("", total=total)
        done = 0
        for experiment, units in todo:
            for unit in units:
                title = f"{experiment.name} {_title(unit)}"
                progress.update(task, description=title)
                try:
                    seconds = _run_unit(experiment, unit, folder)
                except BaseException:
                    console.print(f"{title}: not finished", highlight=False)
                    console.print("the records before it are kept; the same command goes on")
                    raise
                done += 1
                progress.advance(task)
                line = f"{done}/{total} {title}: {seconds_text(seconds)}"
                console.print(line, highlight=False, soft_wrap=True)


def _run_unit(experiment: Experiment, unit: Unit, folder: Path) -> float:
    start = time.perf_counter()
    result = unit.run()
    seconds = time.perf_counter() - start
    record = unit.key | result | {"seconds": round(seconds, 3)}
    append_record(_records(experiment, folder), record)
    return seconds


def _records(experiment: Experiment, folder: Path) -> Path:
    return folder / f"{experiment.name}.jsonl"


def _title(unit: Unit) -> str:
    """The key in short: its values, and the names of numbers."""
    return " ".join(
        str(value) if isinstance(value, str) else f"{name} {value}"
        for name, value in unit.key.items()
        if name != "quick"
    )
