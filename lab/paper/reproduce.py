"""Run the units that have no record yet, then write the page of all records.

A new experiment is a module that exports EXPERIMENT and a line in `EXPERIMENTS`; its name goes into
the options of `vrgcn reproduce` too, which the command line reads without loading anything.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from rich.progress import (
    BarColumn,
    TextColumn,
    TimeElapsedColumn,
)

from lab.harness.records import append_record
from lab.harness.units import Unit, missing_units, read_records
from lab.harness.version import code_version
from lab.paper.estimate import about, seconds_of
from lab.paper.experiment import Choice, Experiment, Verdict
from lab.paper.page import PAGE, write_page
from lab.paper.settings import absent, setting
from vrgcn.data import root_folder
from vrgcn.engine.devices import use_threads
from vrgcn.files.mistakes import InputError
from vrgcn.files.wording import counted, printable, seconds_text
from vrgcn.files.writing import check_out_folder
from vrgcn.pages.page import VERDICTS
from vrgcn.training.progress import TimeLeftColumn, progress_bar
from vrgcn.training.result import check_drawing

# name: module, in the order of the page
EXPERIMENTS = {
    "table1": "lab.paper.table1",
    "table2": "lab.paper.table2",
    "table3": "lab.paper.table3",
    "table4": "lab.paper.table4",
    "fig-loss": "lab.paper.fig_loss",
    "fig-accuracy": "lab.paper.fig_accuracy",
    "fig-testing": "lab.paper.fig_testing",
    "fig-gradient": "lab.paper.fig_gradient",
    "fig-correlation": "lab.paper.fig_correlation",
}


def run_reproduce(
    *,
    what: Sequence[str],
    datasets: tuple[str, ...] | None,
    runs: int | None,
    epochs: int | None,
    quick: bool,
    out: Path | None,
    data_root: Path | None,
    threads: int | None,
    command: str,
) -> None:
    """Run `vrgcn reproduce` with the values of its flags: run, write the page, print the verdicts.

    command: the typed command, for the page
    """
    start = time.perf_counter()
    folder = out or Path("results-quick" if quick else "results")
    choice = Choice(datasets, runs, quick, data_root, threads, epochs)
    names = list(EXPERIMENTS) if "all" in what else list(dict.fromkeys(what))
    _check_datasets(choice)
    for verdicts in reproduce(names, choice, folder, command).values():
        for verdict in verdicts:
            print(f"{VERDICTS[verdict.holds]}: {verdict.text}")
    print(f"report: {printable(folder / PAGE)}")
    print(f"{seconds_text(time.perf_counter() - start)} in all")


def _check_datasets(choice: Choice) -> None:
    """Raise if requested data sets are missing; report which of the others are."""
    for name in choice.datasets or ():
        setting(name)
    missing = absent(choice)
    if missing and choice.datasets:
        raise InputError(
            f"--datasets: the files of {', '.join(missing)} are not in "
            f"{root_folder(choice.data_root)}; say with --data-root where they are, or leave "
            f"{'it' if len(missing) == 1 else 'them'} out (`vrgcn datasets` lists them)"
        )
    if missing:
        print(
            f"left out, their files are not here: {', '.join(missing)} "
            "(`vrgcn datasets` says where they are looked for)"
        )


def reproduce(
    names: Sequence[str], choice: Choice, folder: Path, command: str
) -> dict[str, list[Verdict]]:
    """Run missing units and write the page; return the verdicts of each requested experiment.

    names: of `EXPERIMENTS`
    folder: of the records, figures and the page, which is made from all records there
    command: the typed command, for the page
    """
    check_drawing()
    check_out_folder(folder)
    use_threads(choice.threads)
    code_version()  # now: files may change while units run
    failed = _run(_plan([find_experiment(name) for name in names], choice, folder), folder)
    experiments = [find_experiment(name) for name in EXPERIMENTS]
    verdicts = write_page(experiments, folder, choice.quick, command)
    if failed:
        raise InputError(
            f"{counted(len(failed), 'unit')} failed and {'has' if len(failed) == 1 else 'have'} no "
            f"record; the page is made of the others. {'; '.join(failed)}"
        )
    return {name: verdicts.get(name, []) for name in names}


def find_experiment(name: str) -> Experiment:
    """Import and return the experiment of a name."""
    experiment: Experiment = importlib.import_module(EXPERIMENTS[name]).EXPERIMENT
    return experiment


class _Planned(NamedTuple):
    """A unit to run, and how long it may take."""

    experiment: Experiment
    unit: Unit
    seconds: float


def _plan(experiments: Sequence[Experiment], choice: Choice, folder: Path) -> list[_Planned]:
    """Return all units without a record, experiment by experiment; print how many and how long."""
    planned: list[_Planned] = []
    for experiment in experiments:
        units = experiment.units(choice)
        records = read_records(_records(experiment, folder))
        missing = missing_units(units, records)
        mine = [
            _Planned(experiment, unit, seconds_of(experiment.name, unit, records))
            for unit in missing
        ]
        planned += mine
        there = len(units) - len(missing)
        note = "" if units else "; none of its data sets was asked for or is here"
        time_text = f"; about {about(sum(part.seconds for part in mine))}" if mine else ""
        head = f"{experiment.name}: {len(missing)} units to run, {there} there already"
        print(f"{head}{note}{time_text}")
    if planned:
        total = about(sum(part.seconds for part in planned))
        print(
            f"about {total} in all, by what such units took before; Ctrl-C loses one unit at most"
        )
    return planned


def _run(planned: Sequence[_Planned], folder: Path) -> list[str]:
    """Run the units with one progress bar in estimated seconds. A unit that fails numerically would
    fail again: the others are run, and the failures are returned."""
    failed = []
    with progress_bar(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[done]}/{task.fields[units]}"),
        TimeElapsedColumn(),
        TimeLeftColumn(),
    ) as progress:
        console = progress.console
        total = sum(part.seconds for part in planned)
        task = progress.add_task("", total=total, done=0, units=len(planned))
        for done, (experiment, unit, expected) in enumerate(planned, start=1):
            title = f"{experiment.name} {_title(unit)}"
            progress.update(task, description=title)
            try:
                seconds = _run_unit(experiment, unit, folder)
            except (ArithmeticError, ValueError) as error:
                failed.append(f"{title}: {error}")
                line = printable(f"{title} failed: {error}")
                console.print(line, highlight=False, markup=False, soft_wrap=True)
                progress.update(task, advance=expected, done=done)
                continue
            except BaseException:
                console.print(f"{title}: not finished", highlight=False)
                console.print("the records before it are kept; the same command goes on")
                raise
            progress.update(task, advance=expected, done=done)
            line = f"{done}/{len(planned)} {title}: {seconds_text(seconds)}"
            console.print(line, highlight=False, soft_wrap=True)
    return failed


def _run_unit(experiment: Experiment, unit: Unit, folder: Path) -> float:
    start = time.perf_counter()
    result = unit.run()
    seconds = time.perf_counter() - start
    made = {
        "seconds": round(seconds, 3),
        "version": code_version(),
        "date": datetime.now(UTC).isoformat(timespec="minutes"),
    }
    record = unit.key | result | made
    append_record(_records(experiment, folder), record)
    return seconds


def _records(experiment: Experiment, folder: Path) -> Path:
    return folder / f"{experiment.name}.jsonl"


def _title(unit: Unit) -> str:
    """Return the key in short: its values, and the names of numbers."""
    return " ".join(
        str(value) if isinstance(value, str) else f"{name} {value}"
        for name, value in unit.key.items()
        if name != "quick"
    )
