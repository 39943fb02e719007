"""Runs of (graph, network, estimator, seed): each once, and against exact in the table."""

from __future__ import annotations

from typing import Any

import pytest

from lab.harness.records import append_record, read_lines
from lab.league.real_graphs import Entry
from lab.studies import moving_frame
from lab.studies.moving_frame import ESTIMATORS, best, last, swing, table, units


def test_what_has_a_record_is_not_run_again(study, tmp_path, monkeypatch, graph) -> None:
    monkeypatch.setattr(moving_frame, "entry", lambda name: Entry(name, graph))
    monkeypatch.setattr(moving_frame, "EPOCHS", {"communities": 2})
    out = tmp_path / "records.jsonl"
    flags = ("--graphs", "communities", "--layers", "GCN", "--seeds", 1, "--out", out)
    assert study(moving_frame, *flags, "--units", 1).startswith("1/4 Unit(graph='communities'")
    (first,) = read_lines(out)
    assert first["estimator"] == "exact"
    assert len(first["val"]) == len(first["test"]) == 2
    assert study(moving_frame, *flags).startswith("1/3 Unit(graph='communities'")
    records = read_lines(out)
    assert records[0] == first
    assert [record["estimator"] for record in records] == list(ESTIMATORS)


def test_units_come_seed_by_seed() -> None:
    asked = list(units(["tolokers", "communities"], ["GCN"], list(ESTIMATORS), 2))
    assert [unit.seed for unit in asked] == [0] * 8 + [1] * 8


def record(estimator: str, seed: int, test: list[float]) -> dict[str, Any]:
    val = [0.1, 0.9, *[0.5] * (len(test) - 2)]
    unit = {"graph": "tolokers", "layer": "GCN", "depth": 2, "centred": True}
    unit |= {"estimator": estimator, "seed": seed}
    return unit | {"val": val, "test": test, "diverged": None}


def test_the_table_compares_the_same_seeds_with_exact(study, tmp_path) -> None:
    records = [
        record("exact", 0, [0.1, 0.80, 0.81, 0.82, 0.81, 0.80, 0.82]),
        record("exact", 1, [0.1, 0.70, 0.71, 0.72, 0.71, 0.70, 0.72]),
        record("two-way", 1, [0.1, 0.75, 0.70, 0.73, 0.71, 0.70, 0.74]),
    ]
    assert (last(records[2]), best(records[2])) == (0.74, 0.75)
    assert swing(records[2]) == pytest.approx(0.04)
    shown = table(records)
    row = "| exact | 2 | 10.0 ± 0.0 | 77.0 ± 7.1 (+0.0) | 75.0 ± 7.1 (+0.0) | 2.0 |"
    assert f"| tolokers, GCN, 2 layers {row}" in shown
    row = "| two-way | 1 | 10.0 ± 0.0 | 74.0 ± 0.0 (+2.0) | 75.0 ± 0.0 (+5.0) | 4.0 |"
    assert f"| tolokers, GCN, 2 layers {row}" in shown
    for each in records:
        append_record(tmp_path / "records.jsonl", each)
    assert shown in study(moving_frame, "--show", tmp_path / "records.jsonl")
