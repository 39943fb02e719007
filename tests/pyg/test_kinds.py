"""HeteroConv and to_hetero models over kinds: outputs and gradients of PyG."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
import torch_geometric.nn as gnn
from torch import Tensor, nn
from torch_geometric.nn.models import GraphSAGE

from tests.messages import refused
from tests.pyg.graphs import CLASSES, several_kinds
from tests.pyg.test_adapters import gradients
from vrgcn import MiniBatches, TrainConfig, fit, predict


class Hetero(nn.Module):
    """Layers of several kinds, residual connections, inputs of different widths."""

    def __init__(self) -> None:
        super().__init__()
        data, _ = several_kinds()
        self.convs = nn.ModuleList(
            gnn.HeteroConv({triple: layer(triple) for triple in data.edge_types})
            for layer in (self.first, self.second)
        )
        self.last = nn.Linear(8, CLASSES)

    @staticmethod
    def first(triple: tuple[str, str, str]) -> nn.Module:
        widths = {"user": 5, "item": 4, "shop": 3}
        if triple[1] == "follows":
            return gnn.GCNConv(5, 8)
        return gnn.SAGEConv((widths[triple[0]], widths[triple[2]]), 8)

    @staticmethod
    def second(triple: tuple[str, str, str]) -> nn.Module:
        return gnn.LEConv(8, 8) if triple[1] == "bought" else gnn.GraphConv(8, 8, aggr="mean")

    def forward(self, x_dict: dict[str, Tensor], edge_index_dict: Any) -> Tensor:
        h = {kind: y.tanh() for kind, y in self.convs[0](x_dict, edge_index_dict).items()}
        h = {kind: h[kind] + y.tanh() for kind, y in self.convs[1](h, edge_index_dict).items()}
        return self.last(h["user"])


def hetero_sage() -> nn.Module:
    data, _ = several_kinds()
    inner = GraphSAGE((-1, -1), 8, 2, CLASSES, jk="cat", norm="batch", dropout=0.1)
    return gnn.to_hetero(inner, data.metadata(), aggr="mean")


@pytest.mark.parametrize("make", [Hetero, hetero_sage])
def test_outputs_and_exact_gradients_are_those_of_pyg(make: Any) -> None:
    data, graph = several_kinds(torch.float64)
    model = make().double().eval()
    wanted = outputs(model, data)
    torch.testing.assert_close(predict(model, graph), wanted.detach(), rtol=1e-6, atol=1e-6)
    train = data["user"].train_mask
    F.cross_entropy(wanted[train], data["user"].y[train], reduction="sum").backward()
    full = gradients(model)
    for batch in MiniBatches(model, graph, estimator="exact", batch_size=5, nodes="train"):
        F.cross_entropy(batch.run(model), batch.labels, reduction="sum").backward()
        batch.commit()
    found = gradients(model)
    assert len(full) > 8
    for name, gradient in full.items():
        torch.testing.assert_close(found[name], gradient, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("estimator", ["ns", "cvd", "two-way"])
@pytest.mark.parametrize("make", [Hetero, hetero_sage])
def test_models_train_and_are_what_they_were(make: Any, estimator: str) -> None:
    data, graph = several_kinds()
    model = make()
    outputs(model, data)
    keys = list(model.state_dict())
    fit(model, graph, TrainConfig(epochs=2, batch_size=7, estimator=estimator))
    wanted = outputs(model, data).detach()
    torch.testing.assert_close(predict(model, graph), wanted, rtol=1e-5, atol=1e-5)
    assert list(model.state_dict()) == keys
    assert all("forward" not in vars(module) for module in model.modules())


def test_layers_outside_of_a_hetero_conv_are_refused() -> None:
    class Alone(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = gnn.SAGEConv((4, 5), CLASSES)

        def forward(self, x_dict: Any, edge_index_dict: Any) -> Tensor:
            x = x_dict["item"], x_dict["user"]
            return self.conv(x, edge_index_dict["item", "rev_bought", "user"])

    _, graph = several_kinds()
    with refused():
        predict(Alone(), graph)


def test_a_layer_that_normalises_two_kinds_by_one_degree_is_refused() -> None:
    class Wrong(Hetero):
        @staticmethod
        def second(triple: tuple[str, str, str]) -> nn.Module:
            return gnn.TAGConv(8, 8) if triple[1] == "bought" else gnn.SAGEConv(8, 8)

    _, graph = several_kinds()
    with pytest.raises((ValueError, TypeError, RuntimeError)):
        predict(Wrong(), graph)


def outputs(model: nn.Module, data: Any) -> Tensor:
    found = model(data.x_dict, data.edge_index_dict)
    return found["user"] if isinstance(found, dict) else found
