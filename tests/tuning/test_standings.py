"""The leaderboard at the end: order, gain over the best baseline, the average last."""

from __future__ import annotations

import pytest
from rich.console import Console

from vrgcn.tasks.metrics import METRICS
from vrgcn.tuning.standings import standings, standings_table
from vrgcn.tuning.study import Tried

ACCURACY, RMSE = METRICS["accuracy"], METRICS["rmse"]
MEMBERS = [
    (Tried(-1, "complete", 0.75, {}, 0, 2.0, None, "linear"), 0.01, 0.0),
    (Tried(-1, "complete", 0.5, {}, 0, 1.0, None, "trees-2"), None, 0.25),
    (Tried(3, "complete", 1.0, {"hidden": 64}, 12, 9.0), 0.02, 0.75),
]


def test_rows_are_ranked_and_compared_with_the_best_baseline() -> None:
    rows = standings(MEMBERS, (1.25, 0.03), ACCURACY, planned=30)
    assert [row.name for row in rows] == ["trial 3", "linear", "trees-2", "average"]
    assert [row.kind for row in rows] == ["network", "baseline", "baseline", "average"]
    assert [row.gain for row in rows] == [0.25, 0.0, -0.25, 0.5]
    assert [row.weight for row in rows] == [0.75, 0.0, 0.25, 1.0]
    assert [(row.epochs, row.planned) for row in rows] == [(12, 30), (0, 0), (0, 0), (0, 0)]
    assert rows[-1].seconds == 10.0  # the sum over its members
    assert rows[0].settings == "width 64"


def test_of_errors_less_is_a_gain() -> None:
    rows = standings(MEMBERS, (0.25, None), RMSE, planned=30)
    assert [row.name for row in rows] == ["trees-2", "linear", "trial 3", "average"]
    assert [row.gain for row in rows] == [0.0, -0.25, -0.5, 0.25]


def test_without_baselines_there_is_no_gain() -> None:
    assert [row.gain for row in standings(MEMBERS[2:], (1.0, None), ACCURACY, 30)] == [None, None]


@pytest.mark.parametrize("count", [3, 30])
def test_the_table_has_the_best_and_the_average(count: int) -> None:
    many = [
        (Tried(number, "complete", 1 - number / 100, {}, 5, 1.0), 0.01, 0.0)
        for number in range(count)
    ]
    console = Console(width=150)
    with console.capture() as text:
        console.print(standings_table(standings(many, (1.0, None), ACCURACY, 5), ACCURACY, "Best"))
    rows = [line.split("│")[1:-1] for line in text.get().splitlines() if "│" in line]
    cells = [[cell.strip() for cell in row] for row in rows]
    assert len(cells) == min(count, 10) + 1
    assert cells[0][:8] == ["trial 0", "network", "1.0000", "0.0100", "–", "–", "5/5", "1.0"]
    assert cells[-1][:6] == ["average", "average", "1.0000", "–", "–", "1.00"]
