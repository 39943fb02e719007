"""Embeddings are the activations of the dense computation, of any layer and any nodes."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.messages import refused
from vrgcn import GCN, MLP, Graph, GraphSAGE, TrainConfig, embeddings, fit, predict, scale_graph
from vrgcn.engine import sweeps as engine
from vrgcn.graph.propagation import build_propagation
from vrgcn.inference.saved import SavedModel

NODES = 70


def graph(sparse: bool = False) -> Graph:
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(NODES, 5, generator=generator)
    edges = torch.randint(NODES, (2, 300), generator=generator)
    if sparse:
        features = features.relu().to_sparse_csr()
    return Graph(edges, features, torch.arange(NODES) % 3, train=range(40))


def dense(model: nn.Module, g: Graph) -> list[torch.Tensor]:
    """Return the arguments of each `propagate` and the outputs of the model, with P as a dense
    matrix."""
    P = build_propagation(model.propagation, g).to_dense()
    seen = []

    class Propagate:
        def __call__(self, h):
            seen.append(h)
            return P @ h

        def own(self, h):
            return h

        def beside(self, h):
            return torch.cat([h, self(h)], dim=-1)

    with torch.no_grad():
        outputs = model.eval()(g.features.to_dense(), Propagate())
    return [*seen, outputs]


def model(kind, seed: int = 0, **given) -> nn.Module:
    torch.manual_seed(seed)
    return kind(5, 8, 3, **{"layers": 3, **given})


class Residual(nn.Module):
    """Propagates a hidden layer first, and goes on after the last propagation."""

    propagation = "mean"

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(5, 8), nn.Linear(8, 3)
        self.inner = nn.ModuleList(nn.Linear(8, 8) for _ in range(2))

    def forward(self, x, propagate):
        h = torch.relu(self.first(x))
        for layer in self.inner:
            h = propagate.own(h) + torch.relu(layer(propagate(h)))
        return self.last(h)


MODELS = [model(GCN), model(GraphSAGE), model(GCN, order="before"), Residual()]


@pytest.mark.parametrize("net", MODELS, ids=["gcn", "graphsage", "before", "residual"])
@pytest.mark.parametrize("cost", [1 << 22, 50], ids=["one chunk", "many chunks"])
def test_every_layer_is_that_of_the_dense_computation(net, cost, monkeypatch):
    monkeypatch.setattr("vrgcn.graph.propagation.CHUNK_COST", cost)
    g = graph()
    expected = dense(net, g)
    for place, layer in enumerate(expected):
        assert torch.allclose(embeddings(net, g, place), layer, atol=1e-5)
        assert torch.allclose(embeddings(net, g, place - len(expected)), layer, atol=1e-5)


def test_the_default_is_what_the_last_propagation_averages():
    g, net = graph(), model(GraphSAGE)
    assert torch.allclose(embeddings(net, g), dense(net, g)[2], atol=1e-5)
    assert embeddings(net, g).shape == (NODES, 8)


def test_the_last_layer_are_the_predictions():
    g, net = graph(), model(GCN)
    assert torch.equal(embeddings(net, g, -1), predict(net, g))


def test_chosen_nodes_come_in_their_order_and_cost_only_what_they_depend_on(monkeypatch):
    g, net = graph(), model(GCN)
    every = embeddings(net, g)
    assert torch.allclose(embeddings(net, g, nodes=[7, 3, 7]), every[[7, 3, 7]], atol=1e-6)
    visited = []
    monkeypatch.setattr(engine, "_forward", _counting(engine._forward, visited), raising=True)
    embeddings(net, g, 1, nodes=[7])  # P X is known: no neighbour's activation is needed
    assert visited == [1]


def _counting(forward, visited):
    def counted(model, setup, chunk, *rest):
        visited.append(len(chunk))
        return forward(model, setup, chunk, *rest)

    return counted


def test_tables_may_lie_on_the_disk(tmp_path):
    g, net = graph(), model(GraphSAGE)
    assert torch.equal(embeddings(net, g, directory=tmp_path), embeddings(net, g))


def test_sparse_features_come_back_dense():
    g = graph(sparse=True)
    assert torch.equal(embeddings(model(GCN), g, 0), g.features.to_dense())


def test_a_saved_model_scales_the_graph_itself():
    g = graph()
    scaled, _ = scale_graph(g, "standard")
    net = model(GraphSAGE)
    fit(net, scaled, TrainConfig(epochs=2))
    assert torch.allclose(embeddings(SavedModel.of(net), g), embeddings(net, scaled), atol=1e-6)


def test_a_layer_that_is_not_there_is_refused_by_name():
    with refused():
        embeddings(model(GCN), graph(), 4)
    with refused():
        embeddings(model(MLP), graph())


@pytest.mark.parametrize("layer", ["last", 1.5, None, True])
def test_a_layer_that_is_no_number_is_refused(layer: object) -> None:
    graph = Graph([[0, 1], [1, 2]], torch.eye(3))
    with refused():
        embeddings(GCN(3, 4, 2), graph, layer=layer)
