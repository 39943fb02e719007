"""The race of the estimators: how far `auto` is behind the soonest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lab.harness.records import read_lines
from lab.studies import auto_race
from lab.studies.auto_race import ESTIMATORS, Times, factor_table, table, times
from vrgcn import Graph
from vrgcn.costs.choice import HARDLY_MORE


def record(estimator: str, curve: list[tuple[float, float]]) -> dict[str, Any]:
    return {
        **{"graph": "cora", "split": 0, "estimator": estimator, "curve": curve},
        **{"auto": "exact", "ratio": 1.5, "degree": 4.0},
    }


RECORDS = [
    record("exact", [(1.0, 0.7), (3.0, 0.8)]),
    record("two-way", [(1.0, 0.7), (2.0, 0.792)]),
    record("ns", [(0.5, 0.7), (9.0, 0.75)]),
]


def test_the_target_is_a_point_below_the_best_score_of_all() -> None:
    (found,) = times(RECORDS)
    assert found.seconds == {"exact": 3.0, "two-way": 2.0, "ns": None}
    assert found.behind("exact") == 1.5
    assert found.behind("two-way") == 1
    assert found.behind("ns") == float("inf")
    assert "| cora | 4 | 3.00 | 2.00 | never | 1.5 | exact | 1.50 |" in table(RECORDS)


def test_another_factor_would_have_chosen_otherwise() -> None:
    graphs = [
        Times("cora", {"exact": 3.0, "two-way": 2.0}, 1.5, "exact"),
        Times("ppi", {"exact": 1.0, "two-way": 2.0}, 2.5, "two-way"),
    ]
    assert graphs[0].by_factor(1.0) == "two-way"
    assert graphs[0].by_factor(1.5) == "exact"
    lines = factor_table(graphs).splitlines()
    assert "| 1 times | 1 of 1 | 0 of 1 |" in lines  # cora is fitted on
    assert "| 2 times (now) | 0 of 1 | 0 of 1 |" in lines
    assert "| 3 times | 0 of 1 | 1 of 1 |" in lines


def test_what_has_a_record_is_not_run_again(
    study: Any, graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auto_race, "data_folder", Path)
    monkeypatch.setattr(auto_race, "load", lambda name, split, folder: graph)
    monkeypatch.setattr(auto_race, "warm_up", lambda: None)
    flags = ("--graphs", "cora", "--evaluations", 1, "--out", tmp_path / "race.jsonl")
    study(auto_race, *flags)
    records = read_lines(tmp_path / "race.jsonl")
    assert [r["estimator"] for r in records] == list(ESTIMATORS)
    assert {(r["auto"], r["ratio"] <= HARDLY_MORE) for r in records} == {("exact", True)}
    study(auto_race, *flags)
    assert read_lines(tmp_path / "race.jsonl") == records
