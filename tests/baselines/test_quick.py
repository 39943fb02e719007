"""The baseline that `vrgcn train` compares a network with."""

from __future__ import annotations

import pytest
import torch

from tests.baselines.problems import small
from vrgcn.baselines import quick
from vrgcn.baselines.quick import quick_baseline
from vrgcn.graph.graph import Graph
from vrgcn.tasks import find_task

ACCURACY = find_task("classes").find_metric()


def graph() -> Graph:
    return small(classes=2)


def test_it_is_the_linear_model_with_the_better_validation_score() -> None:
    found = quick_baseline(graph(), ACCURACY)
    assert found is not None
    assert found.words.startswith("a linear model of")
    assert found.val > 0.8
    assert found.test is not None
    assert found.test > 0.8


def test_a_fit_that_would_take_long_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    own = quick._work(graph(), 0, 2)
    monkeypatch.setattr(quick, "_WORK", own)
    found = quick_baseline(graph(), ACCURACY)
    assert found is not None
    assert found.words == "a linear model of a node's own features"
    monkeypatch.setattr(quick, "_WORK", own - 1)
    assert quick_baseline(graph(), ACCURACY) is None


def test_there_is_none_without_validation_nodes() -> None:
    data = graph()
    assert quick_baseline(data.with_splits({"train": data.train}), ACCURACY) is None


def test_labels_of_test_nodes_change_its_test_score_alone() -> None:
    data = graph()
    assert data.labels is not None
    labels = data.labels.clone()
    labels[data.test] = 1 - labels[data.test]
    other = data.replace(labels=labels)
    one, two = quick_baseline(data, ACCURACY), quick_baseline(other, ACCURACY)
    assert one is not None
    assert two is not None
    assert (one.val, one.words) == (two.val, two.words)
    assert one.test == pytest.approx(1 - (two.test or 0.0))


def test_sparse_features_are_fitted_too() -> None:
    data = graph()
    sparse = data.with_features(data.features.to_sparse_csr())
    found = quick_baseline(sparse, ACCURACY)
    assert found is not None
    assert torch.tensor(found.val) > 0.7
