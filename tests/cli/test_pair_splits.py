"""Splits of pairs by a column and by time, as a user runs them: import --keep, train, evaluate."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

Run = Callable[..., tuple[int, str, str]]
SMALL = ("--epochs", 1, "--hidden", 8, "--embedding", 4, "--no-baseline")
NAME = "user-rated-item"


@pytest.fixture
def movies(tmp_path: Path, vrgcn: Run) -> Path:
    """Thirty users and twelve items with ratings from January to December, imported."""
    rng = np.random.default_rng(0)
    users = [f"u{n},{20 + n}" for n in range(30)]
    pairs = sorted({(int(u), int(i)) for u, i in rng.integers((30, 12), size=(200, 2))})
    rated = []
    for number, (u, i) in enumerate(pairs):
        part = "test" if number % 5 == 0 else "train"
        day = f"2026-{1 + number % 12:02d}-15"
        rated.append(f"u{u},i{i},{1 + (u + i) % 5},{day},{part}")
    for name, header, rows in (
        ("users", "id,age", users),
        ("rated", "user,item,rating,day,part", rated),
    ):
        (tmp_path / f"{name}.csv").write_text("\n".join([header, *rows, ""]))
    code, out, error = vrgcn(
        *("import", "--nodes", "user=users.csv", "--edges", f"{NAME}=rated.csv"),
        *("--keep", "rated.rating", "rated.day", "rated.part", "--out", "movies"),
    )
    assert code == 0, error
    assert "rated: kept for each edge 'rating' (number), 'day' (date), 'part' (split)" in out
    return tmp_path / "movies"


def test_a_column_splits_the_pairs_and_evaluate_scores_the_same_ones(
    vrgcn: Run, movies: Path
) -> None:
    way = ("--split-column", "part", "--ratio", 0.8, 0.1, 0.1)
    code, out, error = vrgcn("train", "movies", "--predict", NAME, *way, *SMALL, "--out", "run")
    assert code == 0, error
    assert "pairs: pairs are split by the column part" in out
    assert "training pairs (10%) drawn to be these (--ratio)" in out
    code, out, error = vrgcn("evaluate", "run")
    assert code == 0, error
    page = Path("run/evaluation-test.html").read_text(encoding="utf-8")
    assert "<td>the model</td>" in page
    assert "No leaks" in page
    written = json.loads(Path("run/evaluation-test.json").read_text())
    result = json.loads(Path("run/result.json").read_text())
    assert written["scores"]["the model"]["ndcg@20"] == pytest.approx(result["test"], abs=1e-6)


def test_time_splits_the_pairs_and_the_run_says_what_is_hidden(vrgcn: Run, movies: Path) -> None:
    way = ("--train-until", "2026-08", "--val-until", "2026-10")
    code, out, error = vrgcn("train", "movies", "--predict", NAME, *way, *SMALL, "--out", "run")
    assert code == 0, error
    assert "no edge later than 2026-08 carries a message" in out
    assert "features are scaled using only nodes with an edge up to 2026-08" in out
    assert vrgcn("evaluate", "run")[0] == 0


def test_mistakes_are_named_with_what_to_do(vrgcn: Run, movies: Path) -> None:
    for flags, told in (
        (
            ("--predict", NAME, "--split-column", "fold"),
            "--split-column fold: the graph keeps rating (number), day (date), part (split) of "
            f"{NAME}; import it again with vrgcn import --keep rated.fold",
        ),
        (("--predict", NAME, "--train-until", "June"), "--train-until June: must be a date such"),
        (("--predict", NAME, "--val-until", "2026"), "--val-until 2026 needs --train-until DATE"),
        (("--split-column", "part"), "leave it out, or say what to predict (--predict)"),
        (("--predict", f"{NAME}.stars"), "import it again with vrgcn import --keep rated.stars"),
    ):
        code, _, error = vrgcn("train", "movies", *flags, *SMALL, "--out", "run")
        assert code in (1, 2)
        assert told in error
        assert "Traceback" not in error


def test_ratings_are_trained_evaluated_and_predicted_in_their_own_unit(
    vrgcn: Run, movies: Path
) -> None:
    way = ("--predict", f"{NAME}.rating", "--split-column", "part")
    code, out, error = vrgcn("train", "movies", *way, "--epochs", 2, "--out", "run")
    assert code == 0, error
    assert "validation RMSE" in out
    for rule in ("mean", "mean of the user", "mean of the item", "biases of user and item"):
        assert f"for comparison, {rule}: validation RMSE" in out
    code, out, error = vrgcn("evaluate", "run")
    assert code == 0, error
    assert "MAE" in out
    written = json.loads(Path("run/evaluation-test.json").read_text())["scores"]
    result = json.loads(Path("run/result.json").read_text())
    assert written["the model"]["rmse"] == pytest.approx(result["test"], abs=1e-5)
    assert written["mean"]["rmse"] > written["mean"]["mae"] > 0
    Path("ask.csv").write_text("user,item\nu3,i4\nu0,i0\n")
    code, out, error = vrgcn("predict", "run", "--pairs", "ask.csv", "--out", "said.csv")
    assert code == 0, error
    header, *rows = Path("said.csv").read_text().splitlines()
    assert header.replace('"', "") == "user,item,rating"
    assert [row.replace('"', "").split(",")[:2] for row in rows] == [["u3", "i4"], ["u0", "i0"]]
    assert all(1 <= float(row.split(",")[2]) <= 5 for row in rows)
    assert vrgcn("recommend", "run", "--top", 2, "--out", "top.csv")[0] == 0


def test_classes_of_pairs_are_predicted_with_their_probability(vrgcn: Run, movies: Path) -> None:
    code, _, error = vrgcn(
        *("import", "--nodes", "user=users.csv", "--edges", f"{NAME}=rated.csv"),
        *("--keep", "rated.rating=class", "--out", "classes"),
    )
    assert code == 0, error
    way = ("--predict", f"{NAME}.rating", "--epochs", 2, "--out", "run")
    code, out, error = vrgcn("train", "classes", *way)
    assert code == 0, error
    assert "for comparison, most frequent of the item: validation accuracy" in out
    assert vrgcn("evaluate", "run")[0] == 0
    Path("ask.csv").write_text("user,item\nu3,i4\n")
    assert vrgcn("predict", "run", "--pairs", "ask.csv", "--out", "said.csv")[0] == 0
    header, row = Path("said.csv").read_text().replace('"', "").splitlines()
    assert header == "user,item,rating,probability"
    assert row.split(",")[2] in "12345"
    assert 0.2 <= float(row.split(",")[3]) <= 1
    code, _, error = vrgcn("recommend", "run", "--top", 2, "--out", "top.csv")
    assert code == 1
    assert "predicts classes of pairs (rating), which have no best" in error


def test_nodes_are_split_by_time_and_training_sees_earlier_edges_alone(
    vrgcn: Run, tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    papers = [f"p{n},{rng.normal():.2f},{'ab'[n % 2]},2026-{1 + n % 12:02d}-01" for n in range(60)]
    cites = [f"p{u},p{v}" for u, v in rng.integers(60, size=(150, 2))]
    (tmp_path / "papers.csv").write_text("\n".join(["id,x,label,published", *papers, ""]))
    (tmp_path / "cites.csv").write_text("\n".join(["source,target", *cites, ""]))
    code, out, error = vrgcn(
        *("import", "--nodes", "papers.csv", "--edges", "cites.csv"),
        *("--keep", "published", "--out", "graph"),
    )
    assert code == 0, error
    assert "kept for each node 'published' (date)" in out
    way = ("--train-until", "2026-08", "--val-until", "2026-10")
    code, out, error = vrgcn("train", "graph", *way, "--epochs", 2, "--out", "run")
    assert code == 0, error
    assert "no leaks: training does not see the" in out
    assert "edges that are later than 2026-08" in out
    assert "train=40, val=10, test=10" in out
    code, out, error = vrgcn("evaluate", "run")
    assert code == 0, error
    result = json.loads(Path("run/result.json").read_text())
    assert f"{result['test']:.4f}" in out
    code, _, error = vrgcn("train", "graph", "--train-until", "2025", "--out", "none")
    assert code == 1
    assert "--train-until 2025: no labelled node is that early" in error
