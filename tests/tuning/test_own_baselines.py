"""Estimators of scikit-learn as baselines of a search."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch

from tests.baselines.problems import TASKS, small
from tests.messages import refused
from tests.tuning.test_tuner import CONFIG, MODEL
from vrgcn import load_model, tune
from vrgcn.baselines.estimator import fit_estimator
from vrgcn.baselines.hop_inputs import fit_inputs
from vrgcn.baselines.problem import Problem
from vrgcn.graph.graph import Graph
from vrgcn.graph.names import Names
from vrgcn.inference.predict import predict

pytest.importorskip("optuna")
ensemble = pytest.importorskip("sklearn.ensemble")


def forest(task: str):
    numbers = task == "regression"
    kind = ensemble.RandomForestRegressor if numbers else ensemble.RandomForestClassifier
    return kind(20, random_state=0)


@pytest.mark.parametrize("task", TASKS)
def test_its_outputs_are_those_of_the_estimator(task: str) -> None:
    problem = Problem.of(small(task))
    graph, model = problem.graph, fit_estimator(problem, forest(task))
    _, rows = fit_inputs(problem, 2, tables=False)
    own = forest(task).fit(rows[graph.train].numpy(), problem.labels.numpy())
    found = problem.task.shares(predict(model, graph))
    if task == "classes":
        wanted = own.predict_proba(rows.numpy())
    elif task == "multilabel":
        wanted = np.stack([part[:, -1] for part in own.predict_proba(rows.numpy())], axis=1)
    else:
        wanted = own.predict(rows.numpy())[:, None]
    np.testing.assert_allclose(found.numpy(), wanted, atol=1e-5, rtol=1e-5)


def test_it_is_a_member_that_is_resumed_and_refuses_other_nodes(tmp_path: Path) -> None:
    graph = small()
    given = {"baselines": ("labels", forest("classes")), "trials": 1, "folder": tmp_path}
    found = tune(graph, MODEL, CONFIG, **given)
    assert [tried.name for tried in found.baselines] == ["RandomForestClassifier", "labels"]
    assert found.baselines[0].val > 0.8
    again = tune(graph, MODEL, CONFIG, **given)
    assert again.baselines == found.baselines
    assert again.average_result.test == found.average_result.test
    saved = load_model(tmp_path / "baselines" / "RandomForestClassifier")
    names = Names(pa.array([str(node + 5) for node in range(240)]))
    moved = Graph(graph.edge_index(), graph.features, graph.labels, names=names)
    with refused():
        saved.predict(moved)
    assert torch.isfinite(saved.predict(graph)).all()


def test_what_is_no_estimator_is_refused() -> None:
    for wrong in (3, ensemble.RandomForestClassifier, ensemble.RandomForestRegressor()):
        with refused():
            tune(small(), MODEL, CONFIG, baselines=(wrong,), trials=1)
