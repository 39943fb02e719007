"""Results and options of runs as tables."""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote
from typing import Any

from vrgcn.pages.page import Page
from vrgcn.pages.runs.records import NONE, RunRecord, by_graph, by_metric
from vrgcn.runs.folder import CONFIG


def show_results(page: Page, records: Sequence[RunRecord]) -> None:
    """Show a row for each run, and mark the best validation score on each graph. Choosing a run by
    its test score would make that score too good."""
    graphs = by_graph(records)
    several = len(graphs) > 1
    metrics = {record.metric for record in records}
    score = f" {metrics.pop()}" if len(metrics) == 1 else ""
    columns = ["run", *([] if score else ["score"])]
    first = len(columns)
    columns += [
        f"best validation{score}",
        f"test{score}",
        "at epoch",
        "kept epoch",
        "epochs",
        "seconds of training",
        "seconds of evaluation",
        "neighbours sampled per node",
        "read from history per node",
        *(["graph"] if several else []),  # last: on a phone the scores are seen first
    ]
    rows = [
        [
            record.label,
            *([] if score else [record.metric]),
            *_numbers(record),
            *([record.graph] if several else []),
        ]
        for record in records
    ]
    best = _best_runs([alike for group in graphs.values() for alike in by_metric(group).values()])
    marked = [(row, first) for row, record in enumerate(records) if record.label in best]
    caption = "Marked: the best validation score" + (" on each graph" if several else "")
    page.table(columns, rows, caption=caption if marked else "", marked=marked)


def _numbers(record: RunRecord) -> list[str]:
    result, best = record.result or {}, record.best or {}
    seconds = result["seconds"] if "seconds" in result else record.points[-1]["seconds"]
    return [
        record.score_text(best.get("val")),
        record.score_text(result.get("test")),
        _text(best.get("epoch"), 0),
        _text(result.get("epoch"), 0),
        record.epochs,
        _text(seconds, 2),
        _text(result.get("evaluation_seconds"), 2),
        _text(record.mean("sampled"), 1),
        _text(record.mean("history_reads"), 1),
    ]


def _best_runs(groups: Sequence[Sequence[RunRecord]]) -> set[str]:
    """Return the labels of the runs with the best validation score of each group that has
    several."""
    best: set[str] = set()
    for records in groups:
        known = {r.label: r.best["val"] for r in records if r.best is not None}
        scores = {label: score for label, score in known.items() if score is not None}
        better = records[0].better
        if len(scores) > 1:
            best |= {a for a in scores if not any(better(b, scores[a]) for b in scores.values())}
    return best


def show_options(page: Page, records: Sequence[RunRecord]) -> None:
    """Show a row for each option; options in which the runs differ come first and are marked."""
    names = list(dict.fromkeys(name for record in records for name in record.config))
    values = {name: [option_text(r.config.get(name)) for r in records] for name in names}
    differ = [name for name in names if len(set(values[name])) > 1]
    order = differ + [name for name in names if name not in differ]
    rows = [[name, *values[name]] for name in order]
    marked = [(row, 1 + column) for row in range(len(differ)) for column in range(len(records))]
    caption = ""
    if len(records) > 1:
        caption = "Marked: what differs" if differ else "The runs have the same options"
    page.table(
        ["option", *(record.label for record in records)], rows, caption=caption, marked=marked
    )
    page.text("An option that is not set (–) has its default. A run is repeated by:")
    trained = [r for r in records if not r.fitted]
    page.code("\n".join(f"vrgcn train --config {quote(str(r.folder / CONFIG))}" for r in trained))


def option_text(value: Any) -> str:
    """Format the value of an option."""
    if value is None:
        return NONE
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(option_text, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _text(value: float | None, digits: int) -> str:
    return NONE if value is None else f"{value:,.{digits}f}"
