"""What was cut for time: where records have fewer epochs or runs than the paper."""

from __future__ import annotations

from collections.abc import Sequence

from vrgcn.experiments.experiment import Record
from vrgcn.experiments.runs import in_order, of
from vrgcn.experiments.settings import setting

PLACE_OF = {"reddit-like": "reddit2", "reddit-like-strong": "reddit2"}  # what they stand for


def cuts(records: Sequence[Record], *, curves: bool = False) -> str:
    """Such as "Cut for time: PPI 20 of 100 epochs, 3 of 5 runs. "; "" where nothing was.

    The epochs are those of the longest run of a data set, the runs those of the algorithm that has
    the fewest, told of each where they differ.

    curves: whether the paper's epochs are those of its figures
    """
    found = []
    for dataset in in_order(records, "dataset"):
        mine = of(records, dataset=dataset)
        paper = setting(PLACE_OF.get(dataset, dataset))
        papers = paper.convergence_epochs if curves else paper.train.epochs
        epochs = max(record["epochs"] for record in mine)
        parts = [f"{epochs} of {papers} epochs"] if epochs < papers else []
        runs = _runs(mine)
        if min(runs.values()) < paper.runs:
            parts.append(f"{_told(runs)} of {paper.runs} runs")
        if parts and not mine[0]["quick"]:
            found.append(f"{mine[0]['label']} {', '.join(parts)}")
    return f"Cut for time: {'; '.join(found)}. " if found else ""


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
