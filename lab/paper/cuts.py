"""Cuts for time: records with fewer epochs or runs than the paper."""

from __future__ import annotations

from collections.abc import Sequence

from lab.harness.records import Record, in_order, of
from lab.harness.units import planned_epochs
from lab.paper.settings import Setting, setting

PLACE_OF = {"reddit-like": "reddit2", "reddit-like-strong": "reddit2"}  # what they replace


def cuts(records: Sequence[Record], *, curves: bool = False) -> str:
    """Return text such as "Cut for time: PPI 20 of 100 epochs, 3 of 5 runs. "; "" if nothing was
    cut.

    The epochs are the planned ones, the fewest and the most if they differ; the runs are those of
    the algorithm that has the fewest, listed for each if they differ.

    curves: True if the paper's epochs are those of its figures
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
    """Return texts such as "20 of 100 epochs": one for each number of epochs that the paper has."""
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
    """Return the number of seeds by algorithm, if records have one."""
    names = list(dict.fromkeys(record.get("algorithm", "") for record in records))
    return {
        name: len({r["seed"] for r in records if r.get("algorithm", "") == name}) for name in names
    }


def _told(runs: dict[str, int]) -> str:
    """Return the usual number, and the algorithms that have another."""
    usual = max(set(runs.values()), key=list(runs.values()).count)
    others = [f"{name} {count}" for name, count in runs.items() if count != usual]
    return f"{usual}{' (' + ', '.join(others) + ')' if others else ''}"
