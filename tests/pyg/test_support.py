"""What cannot be trained with histories is refused by name, with something to use instead."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch_geometric.nn as gnn
from torch import Tensor, nn

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
    ("layer", "words"),
    [
        (gnn.GATConv(WIDTH, CLASSES), "GATConv weighs neighbours by attention.*use SAGEConv"),
        (gnn.GATv2Conv(WIDTH, CLASSES), "GATv2Conv weighs neighbours by attention"),
        (gnn.TransformerConv(WIDTH, CLASSES), "TransformerConv weighs neighbours by attention"),
        (gnn.SAGEConv(WIDTH, CLASSES, aggr="max"), r"SAGEConv\(aggr='max'\).*aggr='mean' or 'sum'"),
        (gnn.EdgeConv(nn.Linear(2 * WIDTH, CLASSES)), "EdgeConv takes the maximum.*use SAGEConv"),
        (gnn.GINEConv(nn.Linear(WIDTH, CLASSES)), "GINEConv reads features of edges: use GINConv"),
        (gnn.ResGatedGraphConv(WIDTH, CLASSES), "no adapter for ResGatedGraphConv; there are GCN"),
        (Doubled(WIDTH, CLASSES), "Doubled is a GCNConv with a message of its own"),
        (gnn.GCNConv(WIDTH, CLASSES, aggr="mean"), r"GCNConv\(aggr='mean'\).*aggr='sum' alone"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, nn.Module) else "",
)
def test_layers_are_refused_by_name(layer: nn.Module, words: str) -> None:
    _, graph = one_kind()
    with pytest.raises(ValueError, match=words):
        fit(Small(layer), graph, TrainConfig(epochs=1))


@pytest.mark.parametrize(
    ("norm", "words"),
    [
        (gnn.LayerNorm(CLASSES), r"LayerNorm\(mode='graph'\) normalises over all.*mode='node'"),
        (gnn.GraphNorm(CLASSES), "GraphNorm normalises over all nodes.*use .*BatchNorm"),
        (gnn.PairNorm(), "PairNorm normalises over all nodes"),
        (gnn.InstanceNorm(CLASSES), "InstanceNorm normalises over all nodes"),
        (gnn.MeanSubtractionNorm(), "MeanSubtractionNorm normalises over all nodes"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, nn.Module) else "",
)
def test_norms_over_all_nodes_are_refused_by_name(norm: nn.Module, words: str) -> None:
    _, graph = one_kind()
    with pytest.raises(ValueError, match=words):
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
    with pytest.raises(ValueError, match="depends on nodes that it has no edges to"):
        predict(Centred(gnn.GCNConv(WIDTH, CLASSES)), graph)


def test_a_matrix_of_the_users_is_refused() -> None:
    _, graph = one_kind()
    with pytest.raises(ValueError, match="bring their own matrices: leave propagation= out"):
        predict(Small(gnn.GCNConv(WIDTH, CLASSES)), graph, propagation="mean")
