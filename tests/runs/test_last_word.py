"""What a training says at its end: the best of a few quick baselines, and whether it is better."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.baselines.problems import small
from vrgcn import train
from vrgcn.baselines import RECIPES
from vrgcn.baselines.problem import Problem
from vrgcn.runs import last_word
from vrgcn.runs.last_word import Rival, best_baseline, quick_recipes, verdict
from vrgcn.tasks import find_task
from vrgcn.tasks.metrics import METRICS

ACCURACY = find_task("classes").find_metric()


def test_more_work_leaves_room_for_more_baselines_the_cheapest_first() -> None:
    problem = Problem.of(small())
    some, more = (list(quick_recipes(problem, work)) for work in (0.0, 1e9))
    assert 0 < len(some) < len(more)
    assert more[: len(some)] == some
    assert set(more) == {name for name, recipe in RECIPES.items() if recipe.available}


def test_which_are_fitted_depends_on_no_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = Problem.of(small())
    before = list(quick_recipes(problem, 1e6))
    monkeypatch.setattr("time.monotonic", lambda: 1e9)
    assert list(quick_recipes(problem, 1e6)) == before


def test_the_best_is_chosen_on_validation_nodes() -> None:
    graph, fitted = small(), []
    best = best_baseline(graph, ACCURACY, 0.0, 0, fitted.append)
    assert best is not None
    assert len(fitted) > 1
    assert graph.labels is not None
    other = graph.labels.clone()
    other[graph.test] = 2 - other[graph.test]
    again = best_baseline(graph.replace(labels=other), ACCURACY, 0.0, 0)
    assert again is not None
    assert (again.name, again.scores["val"]) == (best.name, best.scores["val"])
    assert again.scores["test"] != best.scores["test"]


def test_a_baseline_that_cannot_be_fitted_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(recipe: object, problem: object) -> None:
        raise FloatingPointError("diverged")

    monkeypatch.setattr(last_word, "fit_recipe", failing)
    assert best_baseline(small(), ACCURACY, 0.0, 0) is None
    nothing = small().with_splits({"train": small().train})
    assert best_baseline(nothing, ACCURACY, 0.0, 0) is None


@pytest.mark.parametrize(
    ("metric", "rival", "model", "said"),
    [
        ("accuracy", 0.85, 0.80, True),
        ("accuracy", 0.81, 0.80, False),  # within a standard error of 0.0126
        ("rmse", 0.90, 1.0, True),
        ("rmse", 0.99, 1.0, False),
    ],
)
def test_only_a_lead_beyond_noise_is_told(
    metric: str, rival: float, model: float, said: bool
) -> None:
    found = verdict([Rival("link", "of links", {"val": rival})], METRICS[metric], model, 1000)
    assert (found is not None) is said


def test_the_best_of_several_is_told_with_what_takes_it() -> None:
    rivals = [Rival(None, "a rule", {"val": 0.9}), Rival("link", "of links", {"val": 0.95})]
    assert verdict(rivals, ACCURACY, 0.8, 100) == (
        "of links: better than the model that was trained, validation accuracy 0.9500 against "
        '0.8000; model="link" takes it'
    )
    assert str(verdict(rivals[:1], ACCURACY, 0.8, 100)).endswith("0.9000 against 0.8000")
    assert verdict(rivals, ACCURACY, None, 100) is None


def test_a_number_predicted_much_worse_than_by_a_baseline_is_a_warning() -> None:
    found = [Rival("linear", "linear", {"val": value}) for value in (0.79, 0.85)]
    texts = [str(verdict([each], METRICS["rmse"], 1.0, 10_000)) for each in found]
    assert [text.startswith("warning: ") for text in texts] == [True, False]


def test_a_run_ends_with_its_last_word(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = {"model": "mlp", "hidden": 1, "epochs": 1, "diagnostics": 0, "smooth": "never"}
    train(small(), out=tmp_path / "run", verbose=True, threads=1, **given)
    *_, compared, told, _ = capsys.readouterr().out.splitlines()
    assert compared.startswith("for comparison, ")
    assert "better than the model that was trained" in told
