"""For every adapter: outputs are those of PyG's full forward, gradients those of autograd."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
import torch_geometric.nn as gnn
from torch import Tensor, nn

from tests.messages import refused
from tests.pyg.graphs import CLASSES, WIDTH, one_kind
from vrgcn import MiniBatches, predict
from vrgcn.pyg.adapters import ADAPTERS
from vrgcn.pyg.matrices import Wires, normalised


class Two(nn.Module):
    """Two layers of a kind, and a linear one."""

    def __init__(self, make: Callable[[], nn.Module]) -> None:
        super().__init__()
        self.first, self.second = make(), make()
        self.last = gnn.Linear(-1, CLASSES)

    def forward(self, x: Tensor, edge_index: Any, edge_weight: Any = None) -> Tensor:
        h = torch.tanh(call(self.first, x, edge_index, edge_weight))
        return self.last(call(self.second, h[:, :WIDTH], edge_index, edge_weight))


def call(layer: nn.Module, x: Tensor, edge_index: Any, edge_weight: Any) -> Tensor:
    first = (x, x) if isinstance(layer, gnn.GCN2Conv) else (x,)
    if "edge_weight" in inspect.signature(type(layer).forward).parameters:
        return layer(*first, edge_index, edge_weight=edge_weight)
    return layer(*first, edge_index)


W = WIDTH
LAYERS: dict[str, Callable[[], nn.Module]] = {
    "GCNConv": lambda: gnn.GCNConv(W, W),
    "GCNConv improved": lambda: gnn.GCNConv(W, W, improved=True, bias=False),
    "GCNConv sum": lambda: gnn.GCNConv(W, W, normalize=False),
    "GCNConv no loops": lambda: gnn.GCNConv(W, W, add_self_loops=False),
    "GCNConv backwards": lambda: gnn.GCNConv(W, W, flow="target_to_source"),
    "GCNConv cached": lambda: gnn.GCNConv(W, W, cached=True),
    "SAGEConv": lambda: gnn.SAGEConv(W, W),
    "SAGEConv sum": lambda: gnn.SAGEConv(W, W, aggr="sum", normalize=True),
    "SAGEConv project": lambda: gnn.SAGEConv(W, W, project=True),
    "SAGEConv no root": lambda: gnn.SAGEConv(W, W, root_weight=False),
    "SAGEConv module": lambda: gnn.SAGEConv(W, W, aggr=gnn.MeanAggregation()),
    "GraphConv": lambda: gnn.GraphConv(W, W),
    "GraphConv mean": lambda: gnn.GraphConv(W, W, aggr="mean"),
    "GINConv": lambda: gnn.GINConv(nn.Sequential(nn.Linear(W, 7), nn.ReLU(), nn.Linear(7, W)), 0.3),
    "GINConv eps": lambda: gnn.GINConv(nn.Linear(W, W), train_eps=True),
    "SGConv": lambda: gnn.SGConv(W, W, K=2),
    "SSGConv": lambda: gnn.SSGConv(W, W, alpha=0.1, K=2),
    "APPNP": lambda: gnn.APPNP(K=2, alpha=0.2),
    "APPNP sum": lambda: gnn.APPNP(K=1, alpha=0.2, normalize=False),
    "GCN2Conv": lambda: gnn.GCN2Conv(W, alpha=0.1, theta=0.5, layer=1),
    "GCN2Conv two weights": lambda: gnn.GCN2Conv(W, alpha=0.1, shared_weights=False),
    "TAGConv": lambda: gnn.TAGConv(W, W, K=2),
    "LEConv": lambda: gnn.LEConv(W, W),
    "LEConv no bias": lambda: gnn.LEConv(W, W, bias=False),
    "ChebConv": lambda: gnn.ChebConv(W, W, K=3),
    "ChebConv rw": lambda: gnn.ChebConv(W, W, K=2, normalization="rw"),
    "ClusterGCNConv": lambda: gnn.ClusterGCNConv(W, W, diag_lambda=0.3),
    "LGConv": gnn.LGConv,
    "MixHopConv": lambda: gnn.MixHopConv(W, W, powers=[0, 2]),
    "SimpleConv": lambda: gnn.SimpleConv("mean"),
    "SimpleConv sum": lambda: gnn.SimpleConv("sum", combine_root="sum"),
    "SimpleConv cat": lambda: gnn.SimpleConv("sum", combine_root="cat"),
    "SimpleConv loop": lambda: gnn.SimpleConv("sum", combine_root="self_loop"),
    "DirGNNConv": lambda: gnn.DirGNNConv(gnn.SAGEConv(W, W)),
    "AntiSymmetricConv": lambda: gnn.AntiSymmetricConv(W, num_iters=2),
}


def test_every_adapter_is_compared_with_pyg() -> None:
    assert {name.split()[0] for name in LAYERS} >= ADAPTERS.keys()


@pytest.mark.parametrize("weighted", [False, True], ids=["ones", "weights"])
@pytest.mark.parametrize("name", LAYERS)
def test_outputs_and_exact_gradients_are_those_of_pyg(name: str, weighted: bool) -> None:
    data, graph = one_kind(weighted=weighted, dtype=torch.float64)
    model = Two(LAYERS[name]).double()
    wanted = model(data.x, data.edge_index, data.edge_weight)
    torch.testing.assert_close(predict(model, graph), wanted.detach(), rtol=1e-6, atol=1e-6)

    train = data.train_mask
    F.cross_entropy(wanted[train], data.y[train], reduction="sum").backward()
    full = gradients(model)
    for batch in MiniBatches(model, graph, estimator="exact", batch_size=7, nodes="train"):
        F.cross_entropy(batch.run(model), batch.labels, reduction="sum").backward()
        batch.commit()
    found = gradients(model)
    assert full
    assert full.keys() == found.keys()
    for parameter, gradient in full.items():
        torch.testing.assert_close(found[parameter], gradient, rtol=1e-6, atol=1e-6)


def gradients(model: nn.Module) -> dict[str, Tensor]:
    found = {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()
    return found


def test_chebyshev_takes_the_largest_eigenvalue_that_the_model_gives() -> None:
    class Given(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = gnn.ChebConv(W, CLASSES, K=2, normalization=None)

        def forward(self, x: Tensor, edge_index: Any) -> Tensor:
            return self.conv(x, edge_index, lambda_max=3.0)

    data, graph = one_kind()
    model = Given()
    wanted = model(data.x, data.edge_index).detach()
    torch.testing.assert_close(predict(model, graph), wanted, rtol=1e-5, atol=1e-5)


def test_weights_that_a_model_does_not_hand_on_are_not_read() -> None:
    class Plain(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = gnn.GCNConv(W, CLASSES)

        def forward(self, x: Tensor, edge_index: Any) -> Tensor:
            return self.conv(x, edge_index)

    data, graph = one_kind(weighted=True)
    model = Plain()
    wanted = model(data.x, data.edge_index).detach()
    torch.testing.assert_close(predict(model, graph), wanted, rtol=1e-5, atol=1e-5)
    other = model.conv(data.x, data.edge_index, data.edge_weight).detach()
    assert (other - wanted).abs().max() > 0.05


def test_equal_layers_share_one_matrix() -> None:
    first, second = (normalised(Wires(weighted=True), loops=True) for _ in range(2))
    assert first == second
    assert first != normalised(Wires(), loops=True)
    assert first != normalised(Wires(weighted=True), loops=False)


def test_dropped_edges_are_refused() -> None:
    _, graph = one_kind()
    with refused():
        predict(Two(lambda: gnn.APPNP(K=2, alpha=0.1, dropout=0.5)), graph)
