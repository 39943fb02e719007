"""What was cut for time: where records have fewer epochs or runs than the paper."""

from __future__ import annotations

from collections.abc import Sequence

from lab.harness.records import Record, in_order, of
from lab.harness.units import planned_epochs
from lab.paper.settings import Setting, setting

PLACE_OF = {"reddit-like": "reddit2", "reddit-like-strong": "reddit2"}  # what they stand for


def cuts(records: Sequence[Record], *, curves: bool = False) -> str:
    """Such as "Cut for time: PPI 20 of 100 epochs, 3 of 5 runs. "; "" where nothing was.

    The epochs are those that runs were to have, the fewest and the most where they differ; the runs
    those of the algorithm that has the fewest, told of each where they differ.

    curves: whether the paper's epochs are those of its figures
    """
    found = []
    for dataset in in_order(records, "dataset"):
        mine = of(records, dataset=dataset)
        paper = _paper(dataset)
        parts = cut_epochs(mine, curves=curves)
        runs = _runs(mine)
        if min(runs.values()) < paper.runs:
            parts.append(f"{_told(runs)} of {paper.runs} runs")
        if parts and not mine[0]["quick"]:
            found.append(f"{mine[0]['label']} {', '.join(parts)}")
    return f"Cut for time: {'; '.join(found)}. " if found else ""


def cut_epochs(records: Sequence[Record], *, curves: bool = False) -> list[str]:
    """Such as "20 of 100 epochs": one for each number of epochs that the paper has."""
    planned: dict[int, set[int]] = {}
    for record in records:
        paper = _paper(record["dataset"])
        papers = paper.train.epochs
        if curves:
            papers = paper.curve_epochs(record.get("algorithm", ""))
        epochs = planned_epochs(record)
        planned.setdefault(papers, set()).add(papers if epochs is None else epochs)
    return [
        f"{'' if min(found) == max(found) else f'{min(found)} to '}{max(found)} of {papers} epochs"
        for papers, found in planned.items()
        if min(found) < papers
    ]


def _paper(dataset: str) -> Setting:
    return setting(PLACE_OF.get(dataset, dataset))


def _runs(records: Sequence[Record]) -> dict[str, int]:
    """By algorithm, where records have one: how many seeds."""
    names = list(dict.fromkeys(record.get("algorithm", "") for record in records))
    return {
        name: len({r["seed"] for r in records if r.get("algorithm", "") == name}) for name in names
    }


def _told(runs: dict[str, int]) -> str:
    """The usual number, and who has another."""
    usual = max(set(runs.values()), key=list(runs.values()).count)
    others = [f"{name} {count}" for name, count in runs.items() if count != usual]
    return f"{usual}{' (' + ', '.join(others) + ')' if others else ''}"
