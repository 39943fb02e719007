"""Cells of the map: each once, every estimator with the same seconds."""

from __future__ import annotations

import pytest

from lab.harness.records import read_lines
from lab.studies import staleness_map
from lab.studies.staleness_map import ESTIMATORS, Cell, cell_of, cells, run

CELL = Cell(2, 3, 10, 0.01)


def test_a_cell_that_has_a_record_is_not_run_again(study, graph, tmp_path, monkeypatch):
    monkeypatch.setattr(staleness_map, "make_graph", lambda degree: graph)
    out = tmp_path / "results" / "map.jsonl"
    for number in range(2):
        shown = study(staleness_map, "--cells", 1, "--budget", 1e-4, "--out", out)
        assert shown.startswith(f"1/{45 - number} Cell(")
    assert [cell_of(record) for record in read_lines(out)] == cells(2)[:2]
    assert out.with_suffix(".png").stat().st_size > 5_000
    assert shown.count("\n| 2 | 3 | 10 |") == 2


class Counted:
    """A training whose steps take a known time: two-way's a sixteenth of a second, the others'
    twice as long."""

    def __init__(self, model, graph, config) -> None:
        self.cost = 1 / 16 if config.estimator == "two-way" else 1 / 8
        self.stops = 3 if config.estimator == "history" else None
        self.steps, self.diverged = 0, None

    @property
    def seconds(self) -> float:
        return self.steps * self.cost

    @property
    def epochs(self) -> int:
        return self.steps

    def run(self, steps: int) -> float:
        self.steps += steps
        if self.steps == self.stops:
            self.diverged = "the loss became inf"
        return steps * self.cost


@pytest.fixture
def counted(monkeypatch):
    monkeypatch.setattr(staleness_map, "EndlessTrainer", Counted)
    monkeypatch.setattr(staleness_map, "Validation", lambda graph: lambda training: 0.5)


def test_all_have_the_same_seconds_and_one_that_diverged_stands_still(counted, graph):
    record = run(CELL, graph, 2.0)
    assert record["val"] == dict.fromkeys(ESTIMATORS, 0.5)
    assert record["epochs"] == {
        "two-way": 32, "two-way-cv": 16, "cvd": 16, "history": 3, "exact": 16,
    }  # fmt: skip
