"""Experiments in their quick version, run once for the tests of a module."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lab.harness.records import Record
from lab.paper.experiment import Choice, Experiment, Verdict
from vrgcn.pages.page import Page


@dataclass(frozen=True)
class Outcome:
    """records: as they come back from a file; page: what was rendered; folder: with the figures"""

    records: list[Record]
    verdicts: list[Verdict]
    page: str
    folder: Path

    def figures(self) -> set[str]:
        return {file.name for file in self.folder.iterdir()}


@pytest.fixture(scope="module")
def run_quick(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Experiment], Outcome]:
    def run(experiment: Experiment) -> Outcome:
        units = experiment.units(Choice(quick=True, threads=1))
        assert len({json.dumps(unit.key) for unit in units}) == len(units)
        records: list[dict[str, Any]] = [
            json.loads(json.dumps(unit.key | unit.run() | {"seconds": 1.0}, allow_nan=False))
            for unit in units
        ]
        # A run that was stopped has a page too.
        experiment.render(records[:1], Page("Stopped"), tmp_path_factory.mktemp("stopped"))
        folder, page = tmp_path_factory.mktemp("figures"), Page("A test")
        verdicts = experiment.render(records, page, folder)
        assert verdicts
        assert all(verdict.holds is None for verdict in verdicts)  # a quick run decides nothing
        return Outcome(records, verdicts, page.html(), folder)

    return run
