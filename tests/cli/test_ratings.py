"""Runs that predict a column of pairs, such as ratings, are evaluated, reported and searched."""

from __future__ import annotations

import html
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_pair_splits import NAME, movies  # noqa: F401 - a fixture
from vrgcn import load_run
from vrgcn.targets.value_rules import score_values, value_rules

Run = Callable[..., tuple[int, str, str]]
RATINGS = (
    "--predict",
    f"{NAME}.rating",
    "--hidden",
    8,
    "--embedding",
    4,
    "--ratio",
    0.7,
    0.15,
    0.15,
)
SMALL = (*RATINGS, "--epochs", 2)


def result(run: str) -> dict[str, Any]:
    return json.loads(Path(run, "result.json").read_text())


def test_each_split_of_ratings_is_evaluated_beside_simple_rules(
    vrgcn: Run,
    movies: Path,  # noqa: F811
) -> None:
    assert vrgcn("train", "movies", *SMALL, "--out", "run")[0] == 0
    for split in ("val", "test"):
        code, out, error = vrgcn("evaluate", "run", "--split", split)
        assert code == 0, error
        assert f"{split} pairs of {NAME}.rating" in " ".join(out.split())
        found = json.loads(Path(f"run/evaluation-{split}.json").read_text())
        assert found["scores"]["the model"]["rmse"] == pytest.approx(result("run")[split], abs=1e-6)
        pairs = load_run("run").graph().pairs
        assert pairs is not None
        for title, rule in value_rules(pairs).items():
            assert found["scores"][title] == score_values(rule, pairs, split)


def test_a_report_has_the_scores_of_ratings_as_numbers_and_as_classes(
    vrgcn: Run,
    movies: Path,  # noqa: F811
) -> None:
    code, _, error = vrgcn(
        *("import", "--nodes", "user=users.csv", "--edges", f"{NAME}=rated.csv"),
        *("--keep", "rated.rating=class", "--out", "classes"),
    )
    assert code == 0, error
    for graph in ("movies", "classes"):
        run = f"run-{graph}"
        assert vrgcn("train", graph, *SMALL, "--no-baseline", "--out", run)[0] == 0
        code, out, error = vrgcn("report", run, "--out", f"{graph}.html")
        assert code == 0, error
        assert "note" not in out, out
        page = html.unescape(Path(f"{graph}.html").read_text())
        assert result(run)["metric"] in page
        assert f"{result(run)['test']:.4f}"[:5] in page
        for title in value_rules(load_run(run).graph().pairs):
            assert title in page


def test_a_search_for_ratings_compares_networks_with_rules_and_its_best_predicts(
    vrgcn: Run,
    movies: Path,  # noqa: F811
) -> None:
    code, out, error = vrgcn("tune", "movies", *SMALL, "--trials", 2, "--out", "found")
    assert code == 0, error
    board = json.loads(Path("found/leaderboard.json").read_text())
    assert board["metric"] == "RMSE"
    pairs = load_run("found/best").graph().pairs
    assert pairs is not None
    rules = {each["baseline"]: each["val"] for each in board["baselines"]}
    assert rules == {
        title: score_values(rule, pairs, "val")["rmse"]
        for title, rule in value_rules(pairs).items()
    }
    trials = [trial["val"] for trial in board["trials"] if trial["state"] == "complete"]
    assert result("found/best")["val"] == min(trials)
    assert "vrgcn predict found/best --pairs pairs.csv" in " ".join(out.split())
    for trial in Path("found/trials").glob("*/result.json"):
        assert json.loads(trial.read_text())["test"] is None
    code, _, error = vrgcn("evaluate", "found/best")
    assert code == 0, error
    found = json.loads(Path("found/best/evaluation-test.json").read_text())
    test = found["scores"]["the model"]["rmse"]
    assert test == pytest.approx(result("found/best")["test"], abs=1e-6)
    code, _, error = vrgcn("report", "found", "--out", "report.html")
    assert code == 0, error
    card = Path("found/best/README.md").read_text()
    assert f"a value of each pair of the relation `{NAME}`" in card
    assert "vrgcn recommend" not in card
