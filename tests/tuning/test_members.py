"""Members of a search: baselines in their folders, predictions that are kept, standard errors."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch

from tests.baselines.problems import small
from tests.messages import refused
from vrgcn.baselines import RECIPES, Problem, Recipe
from vrgcn.files.mistakes import InputError
from vrgcn.inference.saved import load_model
from vrgcn.tasks.metrics import METRICS
from vrgcn.tuning.members import Member, fit_baseline, fitted_baseline, standard_error

ACCURACY = METRICS["accuracy"]


def fit(folder: Path, name: str = "linear-2", **given):
    problem = Problem.of(small(), ACCURACY)
    options = {"dataset": "cora"}
    stopped = given.get("stopped", lambda: False)
    settings = {"metric": ACCURACY, "options": options, "stopped": stopped}
    return fit_baseline(name, RECIPES[name], problem, small(), folder, **settings)


def test_a_baseline_is_a_folder_with_its_model_and_its_score(tmp_path: Path) -> None:
    tried = fit(tmp_path / "b")
    assert tried is not None
    assert (tried.state, tried.name, tried.epochs) == ("complete", "linear-2", 0)
    assert fitted_baseline(tmp_path / "b") == tried
    graph = small()
    assert graph.labels is not None
    outputs = load_model(tmp_path / "b").predict(graph, graph.val)
    assert tried.val == ACCURACY.compute(outputs, graph.labels[graph.val])
    config = (tmp_path / "b" / "config.toml").read_text()
    assert config == 'dataset = "cora"\nbaseline = "linear-2"\n'
    assert json.loads((tmp_path / "b" / "result.json").read_text())["test"] is None


def test_predictions_of_validation_nodes_are_made_once(tmp_path: Path) -> None:
    tried = fit(tmp_path / "b")
    graph, member = small(), Member(tried, tmp_path / "b")
    outputs = member.validation_outputs(graph)
    assert torch.equal(outputs, load_model(tmp_path / "b").predict(graph, graph.val))
    (tmp_path / "b" / "model.safetensors").unlink()
    assert torch.equal(member.validation_outputs(graph), outputs)


@pytest.mark.parametrize(
    ("error", "reason"),
    [(InputError("no\nadvice"), "no"), (MemoryError(), "MemoryError")],
)
def test_a_baseline_that_fails_is_kept_with_its_reason(
    tmp_path: Path, monkeypatch, error: Exception, reason: str
) -> None:
    def fail(problem: Problem) -> None:
        raise error

    monkeypatch.setitem(RECIPES, "linear-2", Recipe(fail, ""))
    tried = fit(tmp_path / "b")
    assert (tried.state, tried.reason, tried.val) == ("failed", reason, None)
    assert fitted_baseline(tmp_path / "b") == tried
    error = RuntimeError("a defect of ours")
    with refused(RuntimeError):
        fit(tmp_path / "c")
    assert fitted_baseline(tmp_path / "c") is None


def test_a_baseline_that_is_stopped_is_not_kept(tmp_path: Path) -> None:
    assert fit(tmp_path / "b", stopped=lambda: True) is None
    assert fitted_baseline(tmp_path / "b") is None


def test_the_standard_error_of_an_accuracy_is_the_binomial_one() -> None:
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(0, 2, (4000,), generator=generator)
    right = torch.rand(4000, generator=generator) < 0.8
    outputs = torch.nn.functional.one_hot(torch.where(right, labels, 1 - labels), 2).double()
    share = float(right.double().mean())
    # With 20 groups the error itself is known to a sixth; the seed is fixed.
    error = standard_error(ACCURACY, outputs, labels)
    assert error == pytest.approx(math.sqrt(share * (1 - share) / 4000), rel=0.35)
    assert standard_error(ACCURACY, outputs[:1], labels[:1]) is None
    assert standard_error(METRICS["roc-auc"], outputs[:5], torch.tensor([1, 0, 0, 0, 0])) is None
