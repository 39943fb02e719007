"""Built-in models with learned rows and with neighbours' labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.messages import refused
from tests.training.test_state import graph
from vrgcn import Graph, TrainConfig, fit, load_model, predict, save_model
from vrgcn.models.config import ModelConfig
from vrgcn.models.models import GraphModel, build_model
from vrgcn.training.objective import build_objective

BOTH = {"learned_rows": True, "neighbour_labels": True}
HOPS = pytest.mark.parametrize("hops", [1, 2])


def model_for(data: Graph, **given: Any) -> GraphModel:
    config = ModelConfig(hidden=8, **given)
    outputs = build_objective(data).outputs
    return build_model(config, data.num_features, outputs, seed=1, nodes=data.num_nodes)


def labels_of(data: Graph) -> torch.Tensor:
    assert data.labels is not None
    return data.labels


@pytest.mark.parametrize("model", ["graphsage", "gcn"])
@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize(("dense", "hops"), [(1, 1), (2, 1), (1, 2)])
def test_every_shape_trains_and_predicts_what_it_predicts_after_saving(
    model: Any, layers: int, dense: int, hops: int, tmp_path: Path
) -> None:
    data = graph()
    net = model_for(data, model=model, layers=layers, dense=dense, label_hops=hops, **BOTH)
    fit(net, data, TrainConfig(estimator="two-way", epochs=2, batch_size=16))
    save_model(net, tmp_path / "m.safetensors")
    again = load_model(tmp_path / "m.safetensors")
    assert torch.equal(predict(again, data), predict(net, data))


def test_sparse_features_that_are_multiplied_first_have_learned_rows_too() -> None:
    data = graph()
    sparse = data.with_features(data.features.to_sparse_csr())
    given = {"dropout": 0.0, **BOTH}
    dense, first = model_for(data, **given), model_for(sparse, transform_first="always", **given)
    first.load_state_dict(dense.state_dict())
    for net, on in ((dense, data), (first, sparse)):
        build_objective(on).prepare(net)
    assert torch.allclose(predict(dense, data), predict(first, sparse), atol=1e-5, rtol=0)


def returning(data: Graph) -> torch.Tensor:
    """(nodes,): the weight of a node's own label in the mean of its neighbours' means."""
    sources, targets = data.edge_index()
    A = torch.zeros(data.num_nodes, data.num_nodes)
    A[targets, sources] = 1
    P = A.fill_diagonal_(0) / A.sum(1, keepdim=True).clamp(min=1)
    return (P @ P).diag()


@HOPS
def test_a_node_is_not_told_its_own_label(hops: int) -> None:
    """The label of one training node changes nothing for itself in a model of one layer, and
    something for its neighbours; with two hops, for theirs."""
    data = graph()
    node = int(returning(data)[data.train].argmax())  # training nodes come first
    assert returning(data)[node] > 0.05
    labels = labels_of(data).clone()
    labels[node] = (labels[node] + 1) % 3
    changed = data.replace(labels=labels)
    outputs = []
    for told in (data, changed):
        net = model_for(data, layers=1, neighbour_labels=True, label_hops=hops)
        build_objective(told).prepare(net)
        outputs.append(predict(net, data))
    moved = (outputs[0] != outputs[1]).any(1).nonzero()[:, 0].tolist()
    sources, targets = data.edge_index()
    assert node not in moved
    assert moved
    near = set(targets[sources == node].tolist())
    far = set(targets[torch.isin(sources, torch.tensor(sorted(near)))].tolist())
    assert set(moved) <= (near if hops == 1 else near | far)
    assert (set(moved) <= near) == (hops == 1)


@HOPS
def test_labels_of_validation_and_test_nodes_reach_nothing(hops: int) -> None:
    data = graph()
    labels = labels_of(data).clone()
    for split in (data.val, data.test):
        labels[split] = (labels[split] + 1) % 3
    other = data.replace(labels=labels)
    trained = []
    for told in (data, other):
        net = model_for(told, label_hops=hops, **BOTH)
        config = TrainConfig(estimator="two-way", epochs=2, select="last", seed=3)
        fit(net, told, config)
        trained.append(net.state_dict())
    assert all(torch.equal(trained[0][name], trained[1][name]) for name in trained[0])


@HOPS
def test_with_permuted_labels_validation_falls_to_chance(hops: int) -> None:
    """Labels that have nothing to do with the graph cannot be told from neighbours' labels: over
    300 validation nodes of 3 classes, accuracy is below 1/3 + 4 deviations (.027 each)."""
    draw = torch.Generator().manual_seed(0)
    nodes = 600
    edges = torch.randint(nodes, (2, 3000), generator=draw)
    labels = torch.randint(3, (nodes,), generator=draw)
    x = torch.randn(nodes, 4, generator=draw)
    data = Graph(
        edges, x, labels, train=torch.arange(300), val=torch.arange(300, 600), undirected=True
    )
    net = model_for(data, label_hops=hops, **BOTH)
    result = fit(net, data, TrainConfig(estimator="two-way", epochs=5, select="last"))
    assert result.val is not None
    assert result.val < 1 / 3 + 4 * 0.027


def test_three_hops_of_labels_are_refused() -> None:
    with refused():
        ModelConfig(neighbour_labels=True, label_hops=3)


def test_an_mlp_has_no_neighbours_to_learn_from() -> None:
    with refused():
        ModelConfig(model="mlp", learned_rows=True)


def test_tables_need_the_number_of_nodes() -> None:
    with refused():
        build_model(ModelConfig(learned_rows=True), 5, 3, seed=0)
