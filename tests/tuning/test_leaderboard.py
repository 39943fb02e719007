"""The table of a search, in its order, and what is said of the others."""

from __future__ import annotations

from rich.console import Console

from vrgcn.tasks.metrics import METRICS
from vrgcn.training.clock import Clock
from vrgcn.tuning.leaderboard import Leaderboard, board, ranked, settings_text, summary
from vrgcn.tuning.study import Tried

ACCURACY, RMSE = METRICS["accuracy"], METRICS["rmse"]
VALUES = {"hidden": 256, "learning_rate": 0.00312345, "layer_norm": True, "estimator": "cvd"}
TRIALS = [
    Tried(0, "complete", 0.8, VALUES, 30, 4.0),
    Tried(1, "paused", 0.7, VALUES, 3, 1.0),
    Tried(2, "complete", 0.9, VALUES | {"estimator": "two-way"}, 30, 5.0),
    Tried(3, "failed", None, VALUES, 0, 0.1, "it would take 9 GB"),
    Tried(4, "complete", 0.8, VALUES, 30, 2.0),
    Tried(5, "failed", None, VALUES, 0, 0.1, "it would take 9 GB"),
]


def test_the_best_leads_and_the_earlier_of_equals() -> None:
    assert [t.number for t in ranked(TRIALS, ACCURACY.better)] == [2, 0, 4, 1]
    assert [t.number for t in ranked(TRIALS, RMSE.better)] == [1, 0, 4, 2]


def test_the_table_has_scores_and_the_settings_that_differ() -> None:
    console = Console(width=120)
    with console.capture() as text:
        console.print(board(TRIALS, ACCURACY, "Best", shown=2))
    rows = [line.split("│")[1:-1] for line in text.get().splitlines() if "│" in line]
    assert [[cell.strip() for cell in row] for row in rows] == [
        ["2", "0.9000", "two-way", "30", "5.0"],
        ["0", "0.8000", "cvd", "30", "4.0"],
    ]


def test_what_was_tried_is_said() -> None:
    assert summary(TRIALS) == (
        "6 trials: 3 to their end, 1 paused, 2 failed\n  2 failed: it would take 9 GB"
    )
    assert settings_text(VALUES) == "width 256, rate 0.00312, norm yes, estimator cvd"


def test_where_there_is_no_terminal_each_trial_is_a_line(capsys) -> None:
    with Leaderboard(ACCURACY, verbose=True, clock=Clock()) as shown:
        for trial in TRIALS[:4]:
            shown.epoch(trial.number, 1, 30, trial.val)
            shown.ended(trial)
        shown.finish(board(TRIALS[:4], ACCURACY, "Best of 4"))
    out = capsys.readouterr().out
    lines = [line for line in out.splitlines() if line.startswith("trial ")]
    assert len(lines) == 4
    assert "best 0.8000 (trial 0)  paused; 3 epochs" in lines[1]
    assert "best 0.9000 (trial 2)  failed: it would take 9 GB; 0 epochs" in lines[3]
    assert "4 trials: 2 to their end, 1 paused, 1 failed" in out
    with Leaderboard(ACCURACY, verbose=True, clock=Clock()) as shown:
        shown.ended(Tried(0, "complete", 0.8, VALUES, 5, 4.0, "it had its share of the time"))
    assert "(trial 0)  it had its share of the time; 5 epochs" in capsys.readouterr().out
    with Leaderboard(ACCURACY, verbose=False, clock=Clock()) as silent:
        silent.ended(TRIALS[0])
        silent.finish(board(TRIALS[:1], ACCURACY, "Best of 1"))
    assert capsys.readouterr().out == ""


def test_a_trial_that_is_resumed_stands_on_the_board_once(capsys) -> None:
    with Leaderboard(ACCURACY, verbose=True, clock=Clock()) as shown:
        shown.ended(Tried(0, "paused", 0.7, {}, 3, 1.0))
        shown.ended(Tried(0, "complete", 0.8, {}, 9, 3.0))
        shown.finish(board([], ACCURACY, "Best"))
    assert "1 trial: 1 to their end" in capsys.readouterr().out


def test_a_terminal_shows_what_is_done_and_the_seconds_that_pass(monkeypatch) -> None:
    clock = Clock(180.0, begun=0.0)
    monkeypatch.setattr(Clock, "now", staticmethod(lambda: 12.5))
    shown = Leaderboard(ACCURACY, verbose=True, clock=clock)
    shown.doing("fitting the baseline linear")
    console = Console(width=100)
    with console.capture() as text:
        console.print(shown._now)
    assert text.get() == "fitting the baseline linear; 12 s of 3 min 0 s so far\n"
