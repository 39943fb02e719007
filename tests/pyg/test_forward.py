"""PyG models, and users' own, train with histories and stay what they were."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
import torch_geometric.nn as gnn
from torch import Tensor, nn
from torch_geometric.nn.models import GCN, GIN, GraphSAGE

from tests.messages import refused
from tests.pyg.graphs import CLASSES, NODES, WIDTH, one_kind
from vrgcn import (
    ESTIMATORS,
    Graph,
    TrainConfig,
    embeddings,
    fit,
    load_model,
    predict,
    save_model,
)

CONFIG = TrainConfig(epochs=2, batch_size=6, learning_rate=0.01)


class Residual(nn.Module):
    """Residual connections before and after norms, a gate, and a sum of all layers."""

    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.Linear(WIDTH, 8)
        self.convs = nn.ModuleList(gnn.SAGEConv(8, 8) for _ in range(3))
        self.norms = nn.ModuleList(nn.LayerNorm(8) for _ in range(3))
        self.gate = nn.Linear(8, 1)
        self.last = nn.Linear(24, CLASSES)

    def forward(self, x: Tensor, edge_index: Any) -> Tensor:
        h = self.enter(x)
        seen = []
        for conv, norm in zip(self.convs, self.norms, strict=True):
            y = F.dropout(conv(norm(h), edge_index).relu(), 0.2, self.training)
            gate = torch.sigmoid(self.gate(h))
            h = gate * h + (1 - gate) * y
            seen.append(h)
        return self.last(torch.cat([h, torch.stack(seen).sum(0), seen[0]], dim=-1))


class TakesData(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = gnn.GCNConv(WIDTH, CLASSES)

    def forward(self, data: Any) -> Tensor:
        return F.log_softmax(self.conv(data.x, data.edge_index, data.edge_weight), dim=1)


def sequential() -> nn.Module:
    steps = [(gnn.GCNConv(WIDTH, 8), "x, edge_index -> x"), nn.ReLU(), nn.Linear(8, CLASSES)]
    return gnn.Sequential("x, edge_index", steps)


MODELS = {
    "GCN cat": lambda: GCN(WIDTH, 8, 3, CLASSES, jk="cat", norm="batch", dropout=0.2),
    "GCN lstm": lambda: GCN(WIDTH, 8, 2, CLASSES, jk="lstm"),
    "GraphSAGE max": lambda: GraphSAGE(WIDTH, 8, 2, CLASSES, jk="max"),
    "GraphSAGE lazy": lambda: GraphSAGE(-1, 8, 2, CLASSES, norm="layer", norm_kwargs=NODE),
    "GIN last": lambda: GIN(WIDTH, 8, 2, CLASSES, jk="last", act="elu"),
    "residual": Residual,
    "Sequential": sequential,
}
NODE = {"mode": "node"}


@pytest.mark.parametrize("name", MODELS)
def test_trained_models_predict_what_pyg_computes_and_are_what_they_were(name: str) -> None:
    data, graph = one_kind()
    model = MODELS[name]()
    model(data.x, data.edge_index)  # lazy layers are made
    kind, keys = type(model), list(model.state_dict())
    before = {n: p.clone() for n, p in model.named_parameters()}
    held = {name for module in model.modules() for name in vars(module)}
    result = fit(model, graph, CONFIG)
    wanted = model(data.x, data.edge_index).detach()
    torch.testing.assert_close(predict(model, graph), wanted, rtol=1e-5, atol=1e-5)
    assert any(not torch.equal(p, before[n]) for n, p in model.named_parameters())
    assert len(result.curve) == 2
    assert (type(model), list(model.state_dict())) == (kind, keys)
    added = {name for module in model.modules() for name in vars(module)} - held
    assert added <= {"trained_on"}
    plain = MODELS[name]()
    plain.load_state_dict(model.state_dict())
    assert torch.equal(plain.eval()(data.x, data.edge_index).detach(), wanted)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_residual_connections_train_with_every_estimator(estimator: str) -> None:
    data, graph = one_kind()
    model = Residual()
    config = TrainConfig(epochs=1, batch_size=6, estimator=estimator)
    fit(model, graph, config)
    wanted = model(data.x, data.edge_index).detach()
    torch.testing.assert_close(predict(model, graph), wanted, rtol=1e-5, atol=1e-5)


def test_a_model_may_take_data() -> None:
    data, graph = one_kind(weighted=True)
    model = TakesData()
    torch.testing.assert_close(predict(model, graph), model(data).detach(), rtol=1e-5, atol=1e-5)


def test_sparse_features_are_dense_to_the_model() -> None:
    data, _ = one_kind()
    data.x = torch.where(data.x > 0.5, data.x, 0)
    graph = Graph(data.edge_index, data.x.to_sparse_csr(), data.y, train=data.train_mask)
    model = Residual()
    fit(model, graph, CONFIG)
    wanted = model(data.x, data.edge_index).detach()
    torch.testing.assert_close(predict(model, graph), wanted, rtol=1e-5, atol=1e-5)


def test_models_are_saved_loaded_and_embed(tmp_path: Path) -> None:
    data, graph = one_kind()
    model = GraphSAGE(WIDTH, 8, 2, CLASSES, dropout=0.1)
    fit(model, graph, CONFIG)
    save_model(model, tmp_path / "model.safetensors")
    saved = load_model(tmp_path / "model.safetensors", lambda: GraphSAGE(WIDTH, 8, 2, CLASSES))
    assert torch.equal(saved.predict(graph), predict(model, graph))
    some = predict(model, graph, nodes=[3, 1])
    torch.testing.assert_close(some, predict(model, graph)[[3, 1]])
    hidden = model.convs[0](data.x, data.edge_index).relu().detach()
    torch.testing.assert_close(embeddings(saved, graph), hidden, rtol=1e-5, atol=1e-5)


def test_staleness_and_noise_are_measured() -> None:
    _, graph = one_kind()
    model = GraphSAGE(WIDTH, 8, 2, CLASSES, jk="cat", dropout=0.2)
    config = TrainConfig(epochs=2, batch_size=6, estimator="cvd", diagnostics=1)
    last = fit(model, graph, config).curve[-1]
    assert last.staleness is not None
    assert last.staleness > 0


def test_the_first_averages_are_preprocessed() -> None:
    from vrgcn.engine.setup import set_up

    _, graph = one_kind()
    setup = set_up(GCN(WIDTH, 8, 2, CLASSES), graph, preprocess=None)
    assert setup.preprocess
    assert setup.training.depth == 2


def test_layers_that_differ_have_matrices_of_their_own() -> None:
    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gcn, self.sage = gnn.GCNConv(WIDTH, CLASSES), gnn.SAGEConv(WIDTH, CLASSES)

        def forward(self, x: Tensor, edge_index: Any) -> Tensor:
            return self.gcn(x, edge_index) + self.sage(x, edge_index)

    data, graph = one_kind()
    model = Both()
    fit(model, graph, TrainConfig(epochs=1, batch_size=6, estimator="two-way"))
    wanted = model(data.x, data.edge_index).detach()
    torch.testing.assert_close(predict(model, graph), wanted, rtol=1e-5, atol=1e-5)


class Odd(nn.Module):
    """A model that does something with its inputs that minibatches do not allow."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self.what = what
        self.first, self.second = gnn.GCNConv(WIDTH, CLASSES), gnn.GCNConv(WIDTH, CLASSES)

    def forward(self, x: Tensor, edge_index: Any) -> Any:
        if self.what == "beside":
            return self.first(x, edge_index) + self.second(x.relu(), edge_index)
        if self.what == "edges":
            edge_index = edge_index[:, :5]
        if self.what == "cat":
            edge_index = torch.cat([edge_index, edge_index], 1)
        h = self.first(x, edge_index)
        return (h, x) if self.what == "tuple" else h


@pytest.mark.parametrize(
    ("what", "error"),
    [
        ("beside", RuntimeError),
        ("edges", TypeError),
        ("cat", TypeError),
        ("tuple", TypeError),
    ],
)
def test_what_minibatches_do_not_allow_is_said(what: str, error: type) -> None:
    _, graph = one_kind()
    model = Odd(what)
    with refused(error):
        predict(model, graph)
    assert "forward" not in vars(model.first)


def test_an_argument_that_vrgcn_cannot_give_is_named() -> None:
    class Positions(Residual):
        def forward(self, x: Tensor, edge_index: Any, pos: Tensor) -> Tensor:  # type: ignore[override]
            return super().forward(x + pos, edge_index)

    _, graph = one_kind()
    with refused(TypeError):
        predict(Positions(), graph)


def test_layers_have_their_own_forward_again_after_an_error() -> None:
    data, graph = one_kind()
    model = GCN(WIDTH, 8, 2, CLASSES)
    with refused():
        predict(model, graph, nodes=[NODES])
    assert model(data.x, data.edge_index).shape == (NODES, CLASSES)
    assert all("forward" not in vars(module) for module in model.modules())
