"""Rows of the league on a small graph."""

from __future__ import annotations

import time
from typing import Any

import pytest

from lab.league import rows
from lab.league.real_graphs import entry_of
from lab.league.rows import KINDS, LAST, ROWS, Row, run_row
from lab.league.search import processor_time, run_search
from vrgcn import Graph
from vrgcn.baselines import RECIPES
from vrgcn.engine.estimators import ESTIMATORS
from vrgcn.runs.settings import Settings
from vrgcn.training.clock import Clock


@pytest.mark.parametrize("row", ["baseline linear-2", "default", "two-way, last weights"])
def test_a_row_scores_validation_and_test_nodes(row: str, small: Graph) -> None:
    record = run_row(ROWS[row], entry_of("made up", small))
    assert record["val"] > 0.8
    assert record["test"] > 0.8
    assert record["seconds"] > 0
    assert record["kind"] == ROWS[row].kind
    assert record["version"].startswith("0.")


def test_the_default_is_smoothed_as_training_smooths_it(
    small: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry, asked = entry_of("made up", small), []

    def smoothed(model: Any, graph: Graph, result: Any, smooth: str, *others: Any) -> Any:
        asked.append(smooth)
        return result, None

    monkeypatch.setattr(rows, "smooth_run", smoothed)
    for name in ("default", "two-way"):
        run_row(ROWS[name], entry)
    assert asked == [Settings().smooth, "never"]


def test_every_baseline_and_every_estimator_with_both_weights_is_a_row() -> None:
    assert {f"baseline {name}" for name in RECIPES} == {
        name for name, row in ROWS.items() if row.kind == "baseline"
    }
    both = {f"{name}{end}" for name in ESTIMATORS for end in ("", LAST)}
    assert both == {name for name, row in ROWS.items() if row.kind == "estimator"}
    assert KINDS == ("baseline", "default", "estimator", "variant", "tune")


def test_a_search_is_scored_with_the_best_of_what_it_found(small: Graph) -> None:
    row = Row("tune", lambda entry: run_search(entry, None, trials=2))
    record = run_row(row, entry_of("made up", small))
    assert record["test"] > 0.8
    assert record["trials"] == 2
    assert record["baselines"] > 3
    assert sum(record["weights"].values()) == pytest.approx(1)
    parts = [record[name] for name in ("single", "network", "baseline")]
    assert all(part["test"] > 0.6 for part in parts)
    assert parts[0]["val"] == max(part["val"] for part in parts)
    assert record["val"] >= parts[0]["val"]  # the average is chosen on the validation nodes
    assert parts[1]["name"].startswith("trial ")
    assert parts[2]["name"] in RECIPES


def test_the_limit_of_a_search_counts_processor_seconds() -> None:
    with processor_time():
        begun = time.process_time()
        assert begun <= Clock.now() <= time.process_time()
    assert abs(Clock.now() - time.monotonic()) < 60
