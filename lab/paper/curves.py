"""Curves over epochs: code that the figures of training loss and of validation accuracy share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from lab.harness.algorithms import TWO_WAY
from lab.harness.records import Record, in_order, of
from lab.harness.units import Unit
from lab.paper.cuts import cuts
from lab.paper.experiment import Choice, Verdict
from lab.paper.paired import LEVEL, Comparison, compare
from lab.paper.pictures import save_panels
from lab.paper.settings import FIGURES, NOT_THE_PAPERS, chosen_datasets, epochs_of, runs_of, setting
from lab.paper.summary import tail_mean
from lab.paper.wording import mean_text
from vrgcn.pages.page import Page
from vrgcn.pages.panels import Panel, plain_ticks, show_panels

DATASETS = (*FIGURES, "ppi", "reddit")
QUICK_EPOCHS = 5
TEST = f"in a paired t-test over the seeds at {LEVEL:.0%}"
EXACT = "M1+PP"
COLOURS = {
    "M1+PP": "black",
    "NS": "tab:purple",
    "NS+PP": "tab:orange",
    "IS+PP": "tab:red",
    "CV+PP": "tab:blue",
    "CVD+PP": "tab:green",
    TWO_WAY: "tab:cyan",
}


def curve_units(
    choice: Choice,
    algorithms: Sequence[str],
    train: Callable[[str, str, int, Choice], Record],
) -> list[Unit]:
    """Return a training run for each data set, algorithm and seed. All algorithms of a seed come
    before the next seed, so that the records of a stopped figure are comparable."""
    return [
        Unit(
            {"dataset": name, "algorithm": algorithm, "seed": seed, "quick": choice.quick},
            partial(train, name, algorithm, seed, choice),
            epochs_of(choice, setting(name).curve_epochs(algorithm), QUICK_EPOCHS),
        )
        for name in chosen_datasets(choice, DATASETS)
        for seed in range(runs_of(choice, name))
        for algorithm in algorithms
    ]


def settled(records: Sequence[Record], field: str) -> dict[str, dict[int, float]]:
    """Return for each algorithm and seed where the run settled: the mean of the curve's last tenth.
    Runs that diverged are left out."""
    return {
        algorithm: {
            record["seed"]: tail_mean(record[field])
            for record in of(records, algorithm=algorithm)
            if record["diverged"] is None and record[field]
        }
        for algorithm in in_order(records, "algorithm")
    }


def diverged(records: Sequence[Record], algorithm: str) -> int:
    """Count the runs of an algorithm that diverged."""
    return sum(record["diverged"] is not None for record in of(records, algorithm=algorithm))


def by_dataset(records: Sequence[Record]) -> list[tuple[str, list[Record]]]:
    """The label and the records of each data set."""
    groups = (of(records, dataset=dataset) for dataset in in_order(records, "dataset"))
    return [(group[0]["label"], group) for group in groups]


def against_exact(
    records: Sequence[Record], field: str, algorithm: str, *, below: bool = False
) -> Comparison | None:
    """Compare an algorithm with exact training at the end, on one data set: is it above? None
    without runs of both.

    below: ask whether it is below
    """
    ends = settled(records, field)
    return compare(ends.get(algorithm, {}), ends.get(EXACT, {}), below=below)


def reaches(
    records: Sequence[Record],
    field: str,
    algorithm: str,
    claim: str,
    *,
    lower_is_better: bool,
    figure: Callable[[Comparison], str],
) -> list[Verdict]:
    """Return True if an algorithm ends no worse than exact training, on each data set. A run that
    diverged has not reached it."""
    verdicts = []
    for label, mine in by_dataset(records):
        text, lost = f"{label}: {claim}", diverged(mine, algorithm)
        found = against_exact(mine, field, algorithm, below=not lower_is_better)
        if of(mine, algorithm=EXACT) and lost:
            verdicts.append(Verdict(False, f"{text}: {lost} of its runs diverged."))
        elif found is not None:
            verdicts.append(decide(mine, text, [("", found)], [found.refuted], figure))
    return verdicts or [Verdict(None, f"{claim}: no runs to compare.")]


def decide(
    records: Sequence[Record],
    claim: str,
    compared: Sequence[tuple[str, Comparison]],
    answers: Sequence[bool | None],
    figure: Callable[[Comparison], str],
) -> Verdict:
    """Decide a claim about one data set, from comparisons by name: it holds if each of them says
    so, and stays open if one decides nothing, for example because of a single run."""
    text = f"{claim}: {'; '.join(f'{name} {figure(found)}'.strip() for name, found in compared)}"
    if records[0]["quick"]:
        return Verdict(None, f"{text}; a quick run decides nothing.")
    missed = [name for (name, _), answer in zip(compared, answers, strict=True) if answer is False]
    if missed:
        return Verdict(False, f"{text}. Not so{': ' if any(missed) else ''}{', '.join(missed)}.")
    return Verdict(None if None in answers else True, f"{text}.")


def add_curves(
    records: Sequence[Record],
    page: Page,
    folder: Path,
    *,
    name: str,
    field: str,
    title: str,
    scale: float = 1.0,
    digits: int = 1,
    log: bool = False,
) -> None:
    """Add one panel for each data set and a table of where the runs settled to the page; save the
    picture in the folder too.

    field: the list in each record; scale: its unit, such as 100 for percent
    """
    panels = [
        Panel(
            of(records, dataset=dataset)[0]["label"],
            partial(_draw, of(records, dataset=dataset), field, title, scale, log),
        )
        for dataset in in_order(records, "dataset")
    ]
    save_panels(panels, folder, name)
    page.text(
        f"{title[0].upper()}{title[1:]} by epoch: lines are means over the runs, bands their "
        f"range. {cuts(records, curves=True)}{NOT_THE_PAPERS}"
    )
    show_panels(page, panels)
    algorithms = in_order(records, "algorithm")
    rows = []
    for dataset in in_order(records, "dataset"):
        mine = of(records, dataset=dataset)
        ends = settled(mine, field)
        rows.append(
            [mine[0]["label"], str(max(map(len, ends.values())))]
            + [_cell(mine, ends, algorithm, scale, digits) for algorithm in algorithms]
        )
    page.table(["data set", "runs", *algorithms], rows, caption=f"{title}: mean of the last tenth")


def _cell(
    records: Sequence[Record],
    ends: dict[str, dict[int, float]],
    algorithm: str,
    scale: float,
    digits: int,
) -> str:
    lost = diverged(records, algorithm)
    text = mean_text(list(ends.get(algorithm, {}).values()), scale, digits)
    return f"{text} ({lost} diverged)" if lost else text


def _draw(
    records: Sequence[Record], field: str, title: str, scale: float, log: bool, axes: Any
) -> None:
    """Draw the curves of one data set. If some runs of an algorithm finished, those that diverged
    are left out: the table counts them."""
    from matplotlib.ticker import MaxNLocator

    for algorithm in in_order(records, "algorithm"):
        mine = [record for record in of(records, algorithm=algorithm) if record[field]]
        whole = [record for record in mine if record["diverged"] is None] or mine
        if whole:
            _draw_algorithm(axes, algorithm, [record[field] for record in whole], scale, at(whole))
    axes.set(xlabel="epoch", ylabel=title)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    if log:
        axes.set_yscale("log")
        plain_ticks(axes.yaxis)


def at(records: Sequence[Record]) -> list[int]:
    """Return the epochs of the points of the curves; older records have only the distance."""
    longest = max(records, key=lambda record: record["epochs"])
    every = longest.get("every", 1)
    return longest.get("at") or list(range(every, longest["epochs"] + 1, every))


def _draw_algorithm(
    axes: Any, algorithm: str, curves: list[list[float]], scale: float, epochs: list[int]
) -> None:
    """Draw the curves of one algorithm. epochs: of the points"""
    length = min(map(len, curves))  # runs that diverged differ in length
    columns = [[scale * curve[i] for curve in curves] for i in range(length)]
    epochs = epochs[:length]
    mean = [sum(column) / len(column) for column in columns]
    colour = COLOURS[algorithm]
    style = "--" if algorithm == EXACT else "-"
    above = 3 if algorithm == EXACT else 2  # the reference is often covered
    axes.plot(
        epochs,
        mean,
        style,
        color=colour,
        label=algorithm,
        lw=1.4,
        marker="." if length == 1 else None,
        zorder=above,
    )
    low, high = list(map(min, columns)), list(map(max, columns))
    axes.fill_between(epochs, low, high, color=colour, alpha=0.15, lw=0)
