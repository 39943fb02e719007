"""Networks of settings: those that begin as a linear model."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from tests.baselines.problems import small
from tests.messages import refused
from vrgcn import Graph, ModelConfig, TrainConfig, predict
from vrgcn.baselines.logistic import fit_logistic
from vrgcn.baselines.problem import Problem
from vrgcn.inference.saved import load_model, save_model
from vrgcn.models.models import GraphModel
from vrgcn.runs.building import build_network
from vrgcn.runs.fit import fit
from vrgcn.targets.opening import find_target

AUTO = ModelConfig(linear_path="auto")


def built(graph: Graph, config: ModelConfig = AUTO, seed: int = 0) -> GraphModel:
    model = build_network(config, graph, find_target(graph, TrainConfig()), seed)
    assert isinstance(model, GraphModel)
    return model


def numbers(sparse: bool = False) -> Graph:
    """A graph whose numbers are a linear function of a node's own features, and noise."""
    x = small(sparse=sparse).features.to_dense()
    noise = torch.randn(len(x), generator=torch.Generator().manual_seed(3))
    labels = 500 + 40 * x[:, 3] - 25 * x[:, 4] + 5 * noise
    return small("regression", sparse=sparse, labels=labels.double())


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", ["graphsage", "gcn", "residual", "mlp"])
@pytest.mark.parametrize("jumping", ["none", "cat"])
def test_a_network_of_numbers_begins_as_the_ridge_regression(name, sparse, jumping) -> None:
    if name == "residual" and jumping == "cat":
        return
    graph = numbers(sparse)
    config = replace(AUTO, model=name, jumping=jumping)
    ridge = fit_logistic(Problem.of(graph), 0)
    expected = ridge(graph.features, Problem.of(graph).propagate)
    target, model = find_target(graph, TrainConfig()), built(graph, config)
    target.prepare(model)
    assert predict(model, graph, kind="all").double() == pytest.approx(expected.double(), abs=1e-2)


def test_training_keeps_the_path_and_learns_the_rest(tmp_path) -> None:
    graph = numbers()
    model = built(graph)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    config = TrainConfig(epochs=3, estimator="exact", batch_size=32)
    result = fit(model, graph, config)
    after = model.state_dict()
    assert torch.equal(after["linear.weight"], before["linear.weight"])
    assert not torch.equal(after["layers.1.linears.0.weight"], before["layers.1.linears.0.weight"])
    alone = fit(built(graph, ModelConfig()), graph, config)
    assert result.val is not None
    assert alone.val is not None
    assert result.val < 10  # the noise has 5
    assert alone.val > 20
    save_model(model, tmp_path / "model.safetensors")
    again = load_model(tmp_path / "model.safetensors")
    assert torch.equal(predict(again, graph, kind="all"), predict(model, graph, kind="all"))


def test_labels_of_test_nodes_play_no_part_in_the_path() -> None:
    graph = numbers()
    labels: Tensor = graph.labels.clone()  # type: ignore[union-attr]
    labels[graph.test] = 1e6
    assert torch.equal(
        built(small("regression", labels=labels)).linear.weight, built(graph).linear.weight
    )  # type: ignore[union-attr]


def test_the_path_is_chosen_by_the_metric_of_each_model_of_a_graph() -> None:
    def weight(graph: Graph, metric: str) -> Tensor:
        target = find_target(graph, TrainConfig(metric=metric))
        model = build_network(AUTO, graph, target, 0)
        assert isinstance(model, GraphModel)
        assert model.linear is not None
        return model.linear.weight

    graph = numbers()
    by_mae, by_rmse = (weight(graph, metric) for metric in ("mae", "rmse"))
    assert not torch.equal(by_mae, by_rmse)
    assert torch.equal(by_rmse, weight(numbers(), "rmse"))


def test_classes_have_no_path_unless_it_is_given() -> None:
    assert built(small()).linear is None
    weights = built(small(), ModelConfig()).state_dict()
    same = built(small()).state_dict()
    assert all(torch.equal(same[name], value) for name, value in weights.items())
    given = built(small(sparse=True), ModelConfig(linear_path="length"))
    assert given.arguments["linear_path"] == "length"
    assert given.linear is not None
    assert float(given.linear.weight.abs().sum()) > 0
    with refused():
        built(small(val=None), ModelConfig(linear_path="given"))
