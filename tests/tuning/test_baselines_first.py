"""A search with baselines: they come first, are fitted once, and are part of the average."""

from __future__ import annotations

import json
import signal
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.baselines.problems import small
from tests.messages import refused
from vrgcn import TrainConfig, load_run, tune
from vrgcn.baselines import RECIPES
from vrgcn.inference.average import Average
from vrgcn.inference.embed import embeddings
from vrgcn.models.config import ModelConfig
from vrgcn.runs.interrupts import Interrupted
from vrgcn.tasks import find_task
from vrgcn.training import clock as clocks
from vrgcn.tuning import baselines_first as module
from vrgcn.tuning.finishing import TuneResult
from vrgcn.tuning.tune import search_models

pytest.importorskip("optuna")
pytest.importorskip("sklearn")

MODEL = ModelConfig(hidden=8)
CONFIG = TrainConfig(epochs=2, batch_size=64, seed=1)


def search(folder: Path | None = None, task: str = "classes", **given) -> TuneResult:
    names = {"baselines": ("linear", "linear-2"), "trials": 2}
    return tune(small(task), MODEL, CONFIG, folder=folder, **names | given)


@pytest.mark.parametrize(
    ("task", "baselines"),
    [("classes", None), ("multilabel", ("linear", "trees")), ("regression", ("linear", "trees"))],
)
def test_the_best_single_model_and_the_average_are_scored_on_test_nodes(
    task: str, baselines: tuple[str, ...] | None, tmp_path: Path
) -> None:
    result = search(tmp_path, task, baselines=baselines)
    fitted = set(baselines or RECIPES)
    graph, metric = small(task), find_task(task).find_metric()
    assert graph.labels is not None
    assert {tried.name for tried in result.baselines} == fitted
    assert all(tried.state == "complete" for tried in result.baselines)
    *members, average = result.standings
    scores = [row.val for row in members]
    assert scores == sorted(scores, reverse=not metric.error)
    assert result.best.name == members[0].name
    assert not metric.better(members[0].val, average.val)
    assert sum(row.weight for row in members) == pytest.approx(1.0)
    first = next(row for row in members if row.kind == "baseline")
    assert first.gain == 0.0
    assert average.gain == pytest.approx(abs(average.val - first.val))
    for folder, scored in (("best", result.result), ("average", result.average_result)):
        run = load_run(tmp_path / folder)
        outputs = run.saved.predict(graph)
        for nodes, score in ((graph.val, scored.val), (graph.test, scored.test)):
            assert metric.compute(outputs[nodes], graph.labels[nodes]) == pytest.approx(score)
        kept = run.result
        assert kept is not None
        assert (kept["val"], kept["test"]) == (scored.val, scored.test)
        assert run.finished
    about = json.loads((tmp_path / "leaderboard.json").read_text())
    assert [row["name"] for row in about["standings"]] == [row.name for row in result.standings]
    assert len(about["baselines"]) == len(fitted)
    assert "average of" in str(result)


def test_an_average_is_a_run_that_says_which_model_to_embed_with(tmp_path: Path) -> None:
    search(tmp_path)
    run = load_run(tmp_path / "average")
    assert isinstance(run.saved, Average)
    with refused():
        embeddings(run.saved, small())


def test_a_baseline_is_not_fitted_again(tmp_path: Path, monkeypatch) -> None:
    first, fitted = search(tmp_path), []
    for name in ("linear", "linear-2", "trees-2"):
        recipe = RECIPES[name]

        def fit(problem, recipe=recipe, name=name):
            fitted.append(name)
            return recipe.fit(problem)

        monkeypatch.setitem(RECIPES, name, replace(recipe, fit=fit))
    again = search(tmp_path, trials=3, baselines=("linear", "linear-2", "trees-2"))
    assert fitted == ["trees-2"]
    assert again.baselines[:2] == first.baselines
    assert len(again.trials) == 3


def test_labels_of_test_nodes_change_nothing_but_the_test_score(tmp_path: Path) -> None:
    graph = small()
    assert graph.labels is not None
    other = graph.labels.clone()
    other[graph.test] = 2 - other[graph.test]
    found = [
        tune(g, MODEL, CONFIG, baselines=("linear-2", "trees-2"), trials=2)
        for g in (graph, small(labels=other))
    ]
    rows = [[replace(row, seconds=0.0) for row in result.standings] for result in found]
    assert rows[0] == rows[1]
    assert found[0].average.weights == found[1].average.weights
    assert found[0].average_result.test != found[1].average_result.test


def test_without_scikit_learn_trees_are_left_out_with_a_note(monkeypatch) -> None:
    monkeypatch.setattr("vrgcn.baselines.find_spec", lambda name: None)
    notes: list[str] = []
    result = search(baselines=None, trials=1, on_note=notes.append)
    trees = [name for name in RECIPES if "trees" in name]
    without = [name for name in RECIPES if name not in trees]
    assert {tried.name for tried in result.baselines} == set(without)
    (note,) = notes
    assert "without the baselines trees-tables, trees-2" in note
    assert "pip install 'vrgcn[sklearn]'" in note


def test_baselines_have_their_part_of_the_time_and_the_first_in_any_case(monkeypatch) -> None:
    now, notes = [0.0], []
    monkeypatch.setattr(clocks.time, "monotonic", lambda: now[0])
    fit_baseline, asked = module.fit_baseline, []

    def slow(name, recipe, problem, *rest, **settings):
        ended = fit_baseline(name, recipe, problem, *rest, **settings)
        for _ in range(3):
            asked.append((name, problem.over()))
            now[0] += 5.0
        return ended

    monkeypatch.setattr(module, "fit_baseline", slow)
    names = ("linear", "linear-2", "trees")
    result = search(baselines=names, time_limit="100s", trials=1, on_note=notes.append)
    # 20 of 100 seconds: the first may take half of them, the second half of the five that are left.
    assert [tried.name for tried in result.baselines] == ["linear", "linear-2"]
    assert asked == [
        ("linear", False), ("linear", False), ("linear", True),
        ("linear-2", False), ("linear-2", True), ("linear-2", True),
    ]  # fmt: skip
    assert notes[0].startswith("no time for the baselines trees (about ")
    now[0] = 0.0
    assert len(search(time_limit="10s", trials=1, on_note=notes.append).baselines) == 1


def test_what_was_loaded_before_takes_nothing_from_baselines(monkeypatch) -> None:
    """Seven of ten seconds were used when the search began."""
    now = [107.0]
    monkeypatch.setattr(clocks.time, "monotonic", lambda: now[0])
    found = search_models(small(), MODEL, CONFIG, time_limit="10s", begun=100.0, trials=1,
                          baselines=("linear", "linear-2", "labels"))  # fmt: skip
    assert len(found.baselines) == 3


def test_stopped_at_a_baseline_it_goes_on_to_the_same_end(tmp_path: Path, monkeypatch) -> None:
    wanted = search(tmp_path / "whole")
    recipe = RECIPES["linear-2"]

    def fit(problem):
        signal.raise_signal(signal.SIGTERM)
        assert problem.over()
        return recipe.fit(problem)

    monkeypatch.setitem(RECIPES, "linear-2", replace(recipe, fit=fit))
    with refused(Interrupted):
        search(tmp_path / "cut")
    assert (tmp_path / "cut" / "baselines" / "linear" / "result.json").exists()
    assert not (tmp_path / "cut" / "baselines" / "linear-2" / "result.json").exists()
    monkeypatch.setitem(RECIPES, "linear-2", recipe)
    found = search(tmp_path / "cut")
    outputs = [result.average.predict(small()) for result in (wanted, found)]
    assert torch.equal(*outputs)


def test_where_all_networks_fail_the_baselines_are_the_result(monkeypatch) -> None:
    monkeypatch.setattr("vrgcn.tuning.trials.free_memory", lambda: 1000)
    notes: list[str] = []
    result = search(trials=30, on_note=notes.append)
    assert len(result.trials) == 5
    assert result.best.baseline is not None
    assert result.settings is None
    assert any("no more are tried" in note for note in notes)


def test_a_name_that_is_no_baseline_is_refused() -> None:
    with refused():
        search(baselines=("forest",))
