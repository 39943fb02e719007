"""The networks of the race on real graphs: GCN and GraphSAGE with skip connections and norm, once
with PyG's layers and once for ours.

An input layer, graph layers that each add their output to their input, a norm before each of them
and at the end, an output layer: the networks of Platonov et al. (ICLR 2023) with PyG's own layers.
The whole graph is one step, on an adjacency in PyTorch's CSR, which PyG multiplies by PyTorch's
sparse product: several times as fast as on an edge_index, and what PyG makes of torch-sparse's
SparseTensor on a CPU, too. Sparse features are multiplied as such, in PyG's favour: its users have
them dense.
"""

from __future__ import annotations

import warnings
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vrgcn.engine.propagate import Propagate
from vrgcn.graph.graph import Graph
from vrgcn.graph.sparse import is_sparse
from vrgcn.models.dense import InputLinear

Layer = Literal["GCN", "GraphSAGE"]

# PyG itself creates the unchecked matrices.
warnings.filterwarnings("ignore", message="Sparse invariant checks are implicitly disabled")


class Residual(nn.Module):
    """PyG's layers between two dense ones, with skip connections and LayerNorm."""

    def __init__(
        self,
        layer: Layer,
        features: int,
        hidden: int,
        classes: int,
        *,
        layers: int = 2,
        dropout: float = 0.2,
    ) -> None:
        super().__init__()
        from torch_geometric.nn import GCNConv, SAGEConv

        self.dropout = dropout
        self.first = nn.Linear(features, hidden)
        self.convs = nn.ModuleList(
            GCNConv(hidden, hidden, cached=True) if layer == "GCN" else SAGEConv(hidden, hidden)
            for _ in range(layers)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(hidden) for _ in range(layers + 1))
        self.last = nn.Linear(hidden, classes)

    def forward(self, x: Tensor, adjacency: Tensor) -> Tensor:
        """(nodes, features) -> (nodes, classes); x: dense or CSR."""
        if is_sparse(x):
            h = torch.sparse.mm(x, self.first.weight.t()) + self.first.bias
        else:
            h = self.first(x)
        h = self._drop(F.relu(h))
        for conv, norm in zip(self.convs, self.norms, strict=False):
            h = h + self._drop(F.relu(conv(norm(h), adjacency)))
        return self.last(self.norms[-1](h))

    def _drop(self, h: Tensor) -> Tensor:
        return F.dropout(h, self.dropout, self.training)


class SameResidual(nn.Module):
    """The same network written with `propagate`, which every estimator trains."""

    def __init__(
        self,
        layer: Layer,
        features: int,
        hidden: int,
        classes: int,
        *,
        layers: int = 2,
        dropout: float = 0.2,
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.propagation = "gcn" if layer == "GCN" else "mean"
        self.first = InputLinear(features, hidden)
        self.averaged = nn.ModuleList(nn.Linear(hidden, hidden) for _ in range(layers))
        self.own = nn.ModuleList(
            nn.Linear(hidden, hidden, bias=False) for _ in range(layers if layer != "GCN" else 0)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(hidden) for _ in range(layers + 1))
        self.last = nn.Linear(hidden, classes)

    def forward(self, x: Tensor, propagate: Propagate) -> Tensor:
        """(nodes, features) -> (nodes, classes)"""
        h = self._drop(F.relu(self.first(x)))
        for place, averaged in enumerate(self.averaged):
            normed = self.norms[place](h)
            before, own = propagate.own(h), propagate.own(normed)
            new = averaged(propagate(normed))
            if self.own:
                new = new + self.own[place](own)
            h = before + self._drop(F.relu(new))
        return self.last(self.norms[-1](h))

    def _drop(self, h: Tensor) -> Tensor:
        return F.dropout(h, self.dropout, self.training)


def csr_adjacency(graph: Graph) -> Tensor:
    """(nodes, nodes): the adjacency as PyG takes it, entries of float32."""
    return graph.adjacency.to_torch(torch.float32)
