"""Run the units that have no record yet, then write the page of all records.

A new experiment is a module that exports EXPERIMENT and a line in `EXPERIMENTS`; its name goes into
the options of `vrgcn reproduce` too, which the command line reads without loading anything.
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

from vrgcn.engine.devices import use_threads
from vrgcn.experiments.experiment import Choice, Experiment, Unit, Verdict
from vrgcn.experiments.page import write_page
from vrgcn.experiments.records import append_record, missing_units, read_records
from vrgcn.pages.destination import check_out_folder
from vrgcn.training.progress import progress_bar
from vrgcn.training.result import check_drawing
from vrgcn.training.wording import seconds_text

# name: module, in the order of the page
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


def reproduce(
    names: Sequence[str], choice: Choice, folder: Path, command: str
) -> dict[str, list[Verdict]]:
    """Run what is missing, write the page; the verdicts of each experiment that was asked for.

    names: of `EXPERIMENTS`
    folder: of the records, figures and the page, which is made of all records there
    command: what was typed, for the page
    """
    check_drawing()
    check_out_folder(folder)
    use_threads(choice.threads)
    _run([find_experiment(name) for name in names], choice, folder)
    experiments = [find_experiment(name) for name in EXPERIMENTS]
    verdicts = write_page(experiments, folder, choice.quick, command)
    return {name: verdicts.get(name, []) for name in names}


def find_experiment(name: str) -> Experiment:
    """The experiment of a name, its module imported now."""
    experiment: Experiment = importlib.import_module(EXPERIMENTS[name]).EXPERIMENT
    return experiment


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
