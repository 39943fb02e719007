"""Runs whose predictions are corrected and smoothed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from tests.baselines.problems import small
from tests.messages import refused
from vrgcn import load_run, train
from vrgcn.inference.predict import predict
from vrgcn.runs.run import Run
from vrgcn.tasks import find_task

SETTINGS: dict[str, Any] = {"hidden": 8, "epochs": 3, "diagnostics": 0, "model": "mlp"}


def scores(run: Run) -> dict[str, float]:
    """The scores of the predictions of a run on its own graph."""
    graph = run.graph()
    assert graph.labels is not None
    outputs, metric = run.predict(), find_task(graph.task).find_metric()
    return {
        name: metric.compute(outputs[graph.split(name)], graph.labels[graph.split(name)])
        for name in ("val", "test")
    }


def test_a_run_is_smoothed_where_that_is_better_and_says_so(tmp_path: Path) -> None:
    smoothed = train(small(), out=tmp_path / "auto", **SETTINGS)
    plain = train(small(), out=tmp_path / "never", smooth="never", **SETTINGS)
    assert smoothed.saved.smoothing is not None
    assert plain.saved.smoothing is None
    result, before = smoothed.result, plain.result
    assert result is not None
    assert before is not None
    assert result["unsmoothed_val"] == before["val"] < result["val"]
    assert before["unsmoothed_val"] is None
    assert scores(smoothed) == {"val": result["val"], "test": result["test"]}
    assert scores(plain) == {"val": before["val"], "test": before["test"]}
    graph = smoothed.graph()
    assert torch.equal(predict(smoothed.saved.model, graph), predict(plain.saved.model, graph))


def test_a_run_that_goes_on_is_smoothed_anew(tmp_path: Path) -> None:
    train(small(), out=tmp_path / "run", **SETTINGS)
    longer = train(small(), out=tmp_path / "run", resume=True, **SETTINGS | {"epochs": 6})
    at_once = train(small(), out=tmp_path / "once", **SETTINGS | {"epochs": 6})
    assert torch.equal(longer.predict(), at_once.predict())


def test_the_command_line_says_what_smoothing_changed(tmp_path: Path, vrgcn) -> None:
    train(small(), out=tmp_path / "run", **SETTINGS | {"epochs": 1})
    store = tmp_path / "run" / "graph"
    flags = ("--model", "mlp", "--hidden", 8, "--epochs", 3, "--no-baseline")
    code, out, err = vrgcn("train", store, "--out", tmp_path / "two", "--smooth", "always", *flags)
    assert code == 0, err
    assert "before smoothing" in out
    assert load_run(tmp_path / "two").saved.smoothing is not None


def test_without_validation_nodes_always_is_refused_before_the_training(tmp_path: Path) -> None:
    graph = small(val=None)
    with refused():
        train(graph, out=tmp_path / "run", smooth="always", **SETTINGS)
    assert train(graph, out=tmp_path / "auto", **SETTINGS).saved.smoothing is None
