"""Experiments: units of work whose results are kept, and a page that is made from them.

A unit is small enough to be lost (one training run); its record is one line of JSON. Everything on
the page comes only from records, so that a page can be made again without training.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lab.harness.records import Record
from lab.harness.units import Unit
from vrgcn.pages.page import Page


@dataclass(frozen=True)
class Choice:
    """The user's choice.

    datasets: names; None: the experiment's own list
    runs: seeds per algorithm; None: the paper's number
    epochs: maximum number of epochs of a run; None: as many as in the paper
    quick: a smoke version: smallest sizes, few runs, seconds in all
    data_root: where raw files lie; None: as `vrgcn.data.data_root` says
    threads: CPU threads; None: as PyTorch chooses
    """

    datasets: tuple[str, ...] | None = None
    runs: int | None = None
    quick: bool = False
    data_root: Path | None = None
    threads: int | None = None
    epochs: int | None = None


@dataclass(frozen=True)
class Verdict:
    """A claim of the paper, decided by a stated test.

    holds: None where it could not be decided (too few runs, data absent)
    text: the claim, the test and the figures, in one sentence
    """

    holds: bool | None
    text: str


@dataclass(frozen=True)
class Experiment:
    """A table or a figure of the paper.

    name: as the command line calls it, and its file of records
    units: what there is to do for a choice
    render: adds text, tables and figures to the page, the paper's numbers beside ours; saves each
        figure in the folder too (`save_panels`); returns the verdicts
    """

    name: str
    title: str
    units: Callable[[Choice], list[Unit]]
    render: Callable[[list[Record], Page, Path], list[Verdict]]


def undecided(verdicts: list[Verdict]) -> list[Verdict]:
    """Return the same verdicts for a quick run, which decides nothing."""
    return [
        Verdict(None, f"{verdict.text.removesuffix('.')}; a quick run decides nothing.")
        for verdict in verdicts
    ]
