"""The order of the first product is chosen by counted entries."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from vrgcn import Graph, GraphSAGE, ModelConfig, TrainConfig, load_model, predict, train
from vrgcn.costs.epoch_cost import epoch_costs
from vrgcn.costs.order import averaged_entries, build_for, settle_order
from vrgcn.graph.blocks import Blocks
from vrgcn.graph.propagation import build_propagation
from vrgcn.models.models import build_model
from vrgcn.runs.folder import CONFIG


def wide(neighbours: int, *, nodes: int = 60, columns: int = 9000, entries: int = 40) -> Graph:
    """Every node has as many neighbours and as many features that are not zero."""
    generator = torch.Generator().manual_seed(0)
    node = torch.arange(nodes)
    edges = torch.cat([torch.stack([(node + i + 1) % nodes, node]) for i in range(neighbours)], 1)
    features = torch.zeros(nodes, columns)
    features[node[:, None], torch.randint(columns, (nodes, entries), generator=generator)] = 1
    return Graph(
        edges,
        features.to_sparse_csr(),
        torch.arange(nodes) % 3,
        train=node[:30],
        val=node[30:45],
        test=node[45:],
    )


@pytest.mark.parametrize(("own", "rule"), [(True, "gcn"), (False, "mean")])
def test_entries_of_averaged_features_are_those_of_p_x(own: bool, rule: str) -> None:
    graph = wide(7)
    product = build_propagation(rule, graph).to_dense() @ graph.features.to_dense()
    assert (
        averaged_entries(graph.features, graph.adjacency, own=own)
        == int((product != 0).sum()) / graph.num_nodes
    )


@pytest.mark.parametrize("model", ["gcn", "graphsage"])
def test_auto_multiplies_first_where_averages_would_be_dense_and_only_there(model: str) -> None:
    auto = ModelConfig(model=model)  # type: ignore[arg-type]
    many, few = wide(50), wide(2)
    assert averaged_entries(many.features, many.adjacency, own=False) > 1500
    assert settle_order(auto, many).transform_first == "always"
    assert settle_order(auto, few).transform_first == "never"
    dense = many.with_features(many.features.to_dense())
    assert settle_order(auto, dense).transform_first == "never"


def test_a_model_without_neighbours_and_an_order_that_was_asked_for_stay() -> None:
    graph = wide(50)
    assert settle_order(ModelConfig(model="mlp"), graph).transform_first == "never"
    for order in ("always", "never"):
        config = ModelConfig(transform_first=order)  # type: ignore[arg-type]
        assert settle_order(config, graph) is config
        model = build_for(config, graph, 3, seed=0)
        assert model.arguments["transform_first"] is (order == "always")


@pytest.mark.parametrize("model", ["gcn", "graphsage", "mlp"])
def test_a_model_for_sparse_features_has_the_weights_and_outputs_of_any_other(model: str) -> None:
    graph = wide(2)
    config = ModelConfig(model=model, hidden=8)  # type: ignore[arg-type]
    sparse, usual = build_for(config, graph, 3, seed=0), build_model(config, 9000, 3, seed=0)
    assert sparse.arguments == usual.arguments | {"sparse_features": True}
    assert next(sparse.parameters()).shape == next(usual.parameters()).T.shape  # row by row
    ours, theirs = sparse.state_dict(), usual.state_dict()
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    torch.testing.assert_close(predict(sparse, graph), predict(usual, graph))
    dense = graph.with_features(graph.features.to_dense())
    torch.testing.assert_close(predict(sparse, dense), predict(usual, graph))


def test_few_columns_whose_averages_are_dense_are_propagated_first() -> None:
    """As words of amazon_computers: a third of 767 columns is less work than a further hop."""
    graph = wide(20, columns=600, entries=200)
    assert averaged_entries(graph.features, graph.adjacency, own=False) > 590
    assert settle_order(ModelConfig(), graph).transform_first == "never"
    assert (
        settle_order(ModelConfig(), wide(20, columns=6000, entries=200)).transform_first == "always"
    )


def test_a_run_trains_and_predicts_in_the_order_that_auto_stands_for(tmp_path: Path) -> None:
    graph = wide(50)
    train(graph, out=tmp_path / "run", epochs=2, hidden=8)
    saved = load_model(tmp_path / "run")
    assert saved.model.arguments["transform_first"] is True
    assert 'transform_first = "auto"' in (tmp_path / "run" / CONFIG).read_text()
    usual = GraphSAGE(**saved.model.arguments | {"transform_first": False})
    usual.load_state_dict(saved.model.state_dict())
    torch.testing.assert_close(predict(saved, graph), predict(usual, saved.prepare(graph)))


def test_blocks_cost_their_sparse_entries_and_their_dense_columns() -> None:
    sparse = wide(2)
    both = sparse.with_features(Blocks.beside([torch.ones(60, 5), sparse.features]))
    costs = [
        epoch_costs(
            build_for(ModelConfig(), graph, 3, seed=0),
            graph,
            TrainConfig(batch_size=10),
            ["cv"],
        )["cv"]
        for graph in (sparse, both)
    ]
    assert costs[0].entries == costs[1].entries > 0
    for part in ("features", "averaged features"):
        assert costs[1].memory[part] == costs[0].memory[part] + 60 * 5 * 4
    # Three copies of the dense columns of at most ten nodes and their neighbours, and no more.
    assert 0 < costs[1].memory["a minibatch"] - costs[0].memory["a minibatch"] <= 3 * 30 * 5 * 4
    many = wide(50)
    dense = many.with_features(Blocks.beside([torch.ones(60, 5), many.features]))
    assert settle_order(ModelConfig(), dense).transform_first == "always"
