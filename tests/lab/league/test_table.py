"""Tables, verdicts and the picture of the league, from records that are made up."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from lab.league.picture import draw
from lab.league.scores import Difference, Scores, mean_and_error
from lab.league.table import (
    average_table,
    default_table,
    published_table,
    report,
    score_table,
    second_table,
    sections,
    tune_table,
)

Records = list[dict[str, Any]]


def test_the_error_is_the_deviation_over_the_root_of_the_splits() -> None:
    mean, error = mean_and_error([0.5, 0.7])
    assert mean == pytest.approx(0.6)
    assert error == pytest.approx(0.1 * math.sqrt(2) / math.sqrt(2))
    mean, error = mean_and_error([0.3])
    assert (mean, math.isnan(error)) == (0.3, True)  # one split tells no error


def test_rows_and_graphs_stand_in_the_order_of_their_tables(records: Records) -> None:
    lines = score_table(Scores(records, 3)).splitlines()
    assert lines[0] == "| test score, % | tolokers | cora |"
    assert [line.split(" | ")[0][2:] for line in lines[2:]] == [
        *("baseline linear", "baseline trees", "default", "two-way", "two-way, last weights"),
        *("tune", "tune: best single model", "tune: best network", "tune: best baseline"),
    ]
    assert lines[2] == "| baseline linear | 75.0 ± 0.0 | 60.0 ± 5.8 |"
    assert lines[3] == "| baseline trees |  | 82.0 ± 1.2 |"
    assert lines[7] == "| tune | 72.0 ± 1.2 | **92.0 ± 1.0** |"


def test_seconds_are_means_over_splits(records: Records) -> None:
    lines = second_table(Scores(records, 3)).splitlines()
    assert "| baseline trees |  | 2.0 |" in lines
    assert not any("tune: " in line for line in lines)  # a part of the search's


def test_a_search_is_compared_split_by_split_with_the_baseline_that_tests_best(
    records: Records,
) -> None:
    assert tune_table(Scores(records, 3)).splitlines()[2:] == [
        "| tolokers | linear | 75.0 ± 0.0 | 72.0 ± 1.2 | -3.0 ± 1.2 | below |",
        "| cora | trees | 82.0 ± 1.2 | 92.0 ± 1.0 | +10.0 ± 0.6 | above |",
        "",
        "`vrgcn tune` and the best baseline, 2 graphs: above on 1, level on 0, below on 1.",
    ]


def test_rows_within_one_standard_error_are_level() -> None:
    words = [Difference(mean, 0.5).word for mean in (0.6, 0.5, -0.5, -0.6)]
    assert words == ["above", "level", "level", "below"]
    assert Difference(0.0, 0.0).word == "level"


def test_the_default_is_compared_with_the_best_network_also_of_searches(records: Records) -> None:
    lines = default_table(Scores(records, 3)).splitlines()
    search = "| tolokers | tune: best network | 88.0 ± 0.0 | 74.0 ± 0.0 | -14.0 ± 0.0 | no |"
    assert lines[2:4] == [search, "| cora | two-way | 90.0 ± 0.0 | 87.0 ± 0.6 | -3.0 ± 0.6 | no |"]
    assert lines[-1].endswith("on 0 of 2.")


def test_averaged_weights_are_counted_by_graph(records: Records) -> None:
    assert average_table(Scores(records, 3)).splitlines()[2:] == [
        "| two-way | 1 | 0 | 0 | +1.00 |",
        "| all | 1 | 0 | 0 | +1.00 |",
    ]


def test_published_numbers_stand_beside_rows_with_more_splits_than_the_league(
    records: Records,
) -> None:
    lines = published_table(records, "tolokers").splitlines()
    assert lines[-4:] == [
        "| GCN, published | 10 | 83.64 |",
        "| GraphSAGE, published | 10 | 82.43 |",
        "| GAT, published | 10 | 83.70 |",
        "| default | 10 | 74.00 ± 0.00 |",
    ]
    assert published_table([r for r in records if r["split"] < 3], "tolokers") == ""


def test_the_later_of_two_records_counts(records: Records) -> None:
    again = {**records[0], "test": 0.0}
    assert Scores([*records, again]).tests("default", "cora")[0] == 0
    assert "| default | 74.0 ± 0.0 | 58.3 ± 29.2 |" in report([*records, again])


def test_the_picture_is_written(records: Records, tmp_path: Path) -> None:
    draw(records, tmp_path / "league.png")
    assert (tmp_path / "league.png").stat().st_size > 5000


def test_splits_that_are_missing_are_counted(records: Records) -> None:
    counted = sections(records[:-1])["Splits that were run, of 3"]
    assert "| tune | 2 | 3 |" in counted
    assert "| two-way | 0 | 3 |" in counted
    whole = [record for record in records if record["row"] in ("default", "tune")]
    assert not any(title.startswith("Splits") for title in sections(whole))
