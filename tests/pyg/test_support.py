"""What cannot be trained with histories is refused by name, with something to use instead."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch_geometric.nn as gnn
from torch import Tensor, nn

from tests.messages import refused
from tests.pyg.graphs import CLASSES, WIDTH, one_kind
from vrgcn import TrainConfig, fit, predict


class Small(nn.Module):
    def __init__(self, layer: nn.Module, norm: nn.Module | None = None) -> None:
        super().__init__()
        self.layer = layer
        self.norm = nn.Identity() if norm is None else norm

    def forward(self, x: Tensor, edge_index: Any) -> Tensor:
        return self.norm(self.layer(x, edge_index))


class Doubled(gnn.GCNConv):
    def message(self, x_j: Tensor, edge_weight: Tensor) -> Tensor:
        return 2 * x_j


class Renamed(gnn.GCNConv):
    """As it is, under another name."""


@pytest.mark.parametrize(
    "layer",
    [
        gnn.GATConv(WIDTH, CLASSES),
        gnn.GATv2Conv(WIDTH, CLASSES),
        gnn.TransformerConv(WIDTH, CLASSES),
        gnn.SAGEConv(WIDTH, CLASSES, aggr="max"),
        gnn.EdgeConv(nn.Linear(2 * WIDTH, CLASSES)),
        gnn.GINEConv(nn.Linear(WIDTH, CLASSES)),
        gnn.ResGatedGraphConv(WIDTH, CLASSES),
        Doubled(WIDTH, CLASSES),
        gnn.GCNConv(WIDTH, CLASSES, aggr="mean"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, nn.Module) else "",
)
def test_layers_are_refused_by_name(layer: nn.Module) -> None:
    _, graph = one_kind()
    with refused():
        fit(Small(layer), graph, TrainConfig(epochs=1))


@pytest.mark.parametrize(
    "norm",
    [
        gnn.LayerNorm(CLASSES),
        gnn.GraphNorm(CLASSES),
        gnn.PairNorm(),
        gnn.InstanceNorm(CLASSES),
        gnn.MeanSubtractionNorm(),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, nn.Module) else "",
)
def test_norms_over_all_nodes_are_refused_by_name(norm: nn.Module) -> None:
    _, graph = one_kind()
    with refused():
        predict(Small(gnn.GCNConv(WIDTH, CLASSES), norm), graph)


@pytest.mark.parametrize(
    "norm", [gnn.LayerNorm(CLASSES, mode="node"), gnn.BatchNorm(CLASSES), nn.LayerNorm(CLASSES)]
)
def test_norms_of_rows_and_batches_are_trained(norm: nn.Module) -> None:
    data, graph = one_kind()
    model = Small(gnn.SAGEConv(WIDTH, CLASSES), norm)
    fit(model, graph, TrainConfig(epochs=1))
    torch.testing.assert_close(predict(model, graph), model(data.x, data.edge_index).detach())


def test_a_class_that_changes_nothing_has_the_adapter_of_its_base() -> None:
    data, graph = one_kind()
    model = Small(Renamed(WIDTH, CLASSES))
    torch.testing.assert_close(predict(model, graph), model(data.x, data.edge_index).detach())


def test_a_model_that_mixes_all_nodes_by_hand_is_refused() -> None:
    class Centred(Small):
        def forward(self, x: Tensor, edge_index: Any) -> Tensor:
            return self.layer(x - x.mean(0), edge_index)

    _, graph = one_kind()
    with refused():
        predict(Centred(gnn.GCNConv(WIDTH, CLASSES)), graph)


def test_a_matrix_of_the_users_is_refused() -> None:
    _, graph = one_kind()
    with refused():
        predict(Small(gnn.GCNConv(WIDTH, CLASSES)), graph, propagation="mean")
