"""Runs that differ only in their seed: each of them, and their means and standard deviations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean

from vrgcn.files.wording import deviation
from vrgcn.pages.page import Page
from vrgcn.pages.runs.records import NONE, RunRecord, read_runs
from vrgcn.pages.terminal import print_table, text_table
from vrgcn.runs.folder import SEED, member_runs


def by_seed(records: Sequence[RunRecord]) -> list[list[RunRecord]]:
    """Group the finished runs by the folder that `vrgcn train --seeds` wrote. Runs of other options
    with similar names have no mean."""
    groups: dict[tuple[Path, str], list[RunRecord]] = {}
    for record in records:
        folder = record.folder.resolve()
        if folder.name.startswith(SEED) and record.result is not None:
            others = sorted((k, v) for k, v in record.config.items() if k != "seed")
            groups.setdefault((folder.parent, repr(others)), []).append(record)
    return [runs for runs in groups.values() if len(runs) > 1]


def seed_columns(runs: Sequence[RunRecord]) -> list[str]:
    metric = runs[0].metric
    return [
        "seed", f"validation {metric}", f"test {metric}", "kept epoch", "epochs",
        "seconds of training",
    ]  # fmt: skip


def seed_rows(runs: Sequence[RunRecord]) -> list[list[str]]:
    """Return a row for each run, and a last one for their means ± standard deviations."""
    columns = [_numbers(run) for run in runs]
    texts: list[Callable[[float], str]] = [
        *[runs[0].score_text] * 2,
        *[lambda value: f"{value:,.1f}"] * 2,
        lambda value: f"{value:,.2f}",
    ]
    rows = [
        [
            str(run.config.get("seed", NONE)),
            *(runs[0].score_text(value) for value in values[:2]),
            *(NONE if value is None else f"{value:,.0f}" for value in values[2:4]),
            *(NONE if value is None else f"{value:,.2f}" for value in values[4:]),
        ]
        for run, values in zip(runs, columns, strict=True)
    ]
    means = [
        _mean([value for value in column if value is not None], text)
        for column, text in zip(zip(*columns, strict=True), texts, strict=True)
    ]
    return [*rows, ["mean", *means]]


def show_seeds(page: Page, records: Sequence[RunRecord]) -> None:
    """Show a table for each folder of seeds among the runs."""
    for runs in by_seed(records):
        folder = runs[0].folder.resolve().parent
        rows = seed_rows(runs)
        last = [(len(rows) - 1, column) for column in range(1, len(rows[0]))]
        caption = f"{folder.name}: {len(runs)} seeds, marked their mean ± standard deviation"
        page.table(seed_columns(runs), rows, caption=caption, marked=last)


def _numbers(run: RunRecord) -> list[float | None]:
    result = run.result or {}
    return [
        *(result.get(name) for name in ("val", "test", "epoch")),
        len(run.points),
        result.get("seconds"),
    ]


def _mean(values: Sequence[float], text: Callable[[float], str]) -> str:
    if not values:
        return NONE
    spread = deviation(values)
    return text(fmean(values)) + ("" if spread is None else f" ± {text(spread)}")


def print_seeds(folder: Path) -> None:
    """Print the table of the runs in a folder."""
    runs = read_runs(member_runs(folder))
    title = f"{folder}: {len(runs)} seeds, mean ± standard deviation"
    print_table(text_table(title, seed_columns(runs), seed_rows(runs)))
