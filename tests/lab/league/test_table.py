"""Tables and the picture of the league, from records that are made up."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from lab.league.table import draw, markdown, mean_and_error, seconds

RECORDS = [
    {"graph": graph, "row": row, "split": split, "test": test, "cpu_seconds": 2.0}
    for graph, row, split, test in (
        ("a", "baseline linear", 0, 0.5),
        ("a", "baseline linear", 1, 0.7),
        ("a", "default", 0, 0.9),
        ("b", "default", 0, 0.25),
    )
]


def test_the_error_is_the_deviation_over_the_root_of_the_splits() -> None:
    mean, error = mean_and_error([0.5, 0.7])
    assert mean == pytest.approx(0.6)
    assert error == pytest.approx(0.1 * math.sqrt(2) / math.sqrt(2))
    assert mean_and_error([0.3]) == (0.3, 0.0)


def test_the_best_of_a_column_is_bold_and_what_is_missing_is_empty() -> None:
    assert markdown(RECORDS).splitlines() == [
        "| test score, % | a | b |",
        "|---|---|---|",
        "| baseline linear | 60.0 ± 10.0 |  |",
        "| default | **90.0 ± 0.0** | **25.0 ± 0.0** |",
    ]


def test_seconds_are_means_over_splits() -> None:
    assert "| baseline linear | 2.0 |  |" in seconds(RECORDS).splitlines()


def test_the_picture_is_written(tmp_path: Path) -> None:
    draw(RECORDS, tmp_path / "league.png")
    assert (tmp_path / "league.png").stat().st_size > 1000
