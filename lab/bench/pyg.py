"""The peer: the same model in PyG, trained from `NeighborLoader` or on the whole graph at once.

Same data (the training nodes and the edges among them), widths, dropout of what is hidden,
LayerNorm, optimiser, batches and threads. `SAGEConv` averages first and has a weight matrix for
each of x and P x, as [x, P x] W has. Dropout of the features is left out, in PyG's favour: ours
drops [x, P x] of the nodes that are computed, and PyG's would fall on x of all sampled neighbours.
"""

from __future__ import annotations

import importlib.util
import time
import warnings
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lab.harness.algorithms import Architecture
from vrgcn.graph.graph import Graph
from vrgcn.training.objective import loss_per_node

HOW_TO_INSTALL = (
    "PyG's NeighborLoader needs torch-sparse or pyg-lib, and neither is installed: "
    "pip install pyg-lib, or wheels of torch-scatter and torch-sparse built for this PyTorch"
)

# A user who measures with torch-sparse has chosen it, and PyG itself creates the unchecked
# matrices.
warnings.filterwarnings("ignore", message="Using 'NeighborSampler' without a 'pyg-lib'")
warnings.filterwarnings("ignore", message="Sparse invariant checks are implicitly disabled")


def can_sample() -> bool:
    """Return True if `NeighborLoader` works here."""
    return any(importlib.util.find_spec(name) for name in ("torch_sparse", "pyg_lib"))


def loader_name(fanouts: tuple[int, ...]) -> str:
    return f"PyG NeighborLoader {list(fanouts)}"


def training_graph(graph: Graph) -> Graph:
    """Return only the training nodes, renumbered, with the edges among them: PyG computes every
    node that it is given."""
    return Graph.from_pyg(graph.to_pyg().subgraph(graph.train))


class SAGE(nn.Module):
    """`models.GraphSAGE` with two graph layers of two dense layers each, written for PyG."""

    def __init__(self, graph: Graph, architecture: Architecture) -> None:
        super().__init__()
        from torch_geometric.nn import SAGEConv

        hidden, self.dropout = architecture.hidden, architecture.dropout
        self.convs = nn.ModuleList(
            SAGEConv(width, hidden, aggr="mean", bias=False)
            for width in (graph.num_features, hidden)
        )
        self.linears = nn.ModuleList(
            nn.Linear(hidden, width, bias=False) for width in (hidden, graph.num_classes)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(hidden) for _ in range(3))

    def forward(self, x: Tensor, edges: Any) -> Tensor:
        """(nodes, features) -> (nodes, classes); edges: edge_index or an adjacency."""
        x = F.relu(self.norms[0](self.convs[0](x, edges)))
        x = F.relu(self.norms[1](self.linears[0](self._drop(x))))
        x = F.relu(self.norms[2](self.convs[1](self._drop(x), edges)))
        return self.linears[1](self._drop(x))

    def _drop(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.dropout, self.training)


class LoaderTraining:
    """Training on `training_graph` from `NeighborLoader`; fan-outs go from the minibatch down."""

    def __init__(self, graph: Graph, architecture: Architecture, fanouts: tuple[int, ...]) -> None:
        from torch_geometric.loader import NeighborLoader

        self.model = SAGE(graph, architecture).train()
        self.optimizer = _adam(self.model)
        self.loader = NeighborLoader(
            graph.to_pyg(),
            num_neighbors=list(fanouts),
            batch_size=architecture.batch,
            input_nodes=graph.train,
            shuffle=True,
        )
        self._stream = self._endless()

    @property
    def steps_per_epoch(self) -> int:
        return len(self.loader)

    def milliseconds(self, steps: int) -> float:
        """Return the mean time of a step: sampling, forward, backward, update."""
        start = time.perf_counter()
        for _ in range(steps):
            batch = next(self._stream)
            seeds = batch.batch_size
            outputs = self.model(batch.x, batch.edge_index)[:seeds]
            _update(self.optimizer, loss_per_node(outputs, batch.y[:seeds]).mean())
        return (time.perf_counter() - start) / steps * 1e3

    def _endless(self) -> Iterator[Any]:
        while True:
            yield from self.loader


class FullBatchTraining:
    """Training on the whole of `training_graph`: an epoch is one step."""

    def __init__(self, graph: Graph, architecture: Architecture) -> None:
        self.graph = graph
        self.model = SAGE(graph, architecture).train()
        self.optimizer = _adam(self.model)
        self.adjacency = adjacency(graph)

    def milliseconds(self) -> float:
        start = time.perf_counter()
        graph = self.graph
        assert graph.labels is not None
        outputs = self.model(graph.features, self.adjacency)[graph.train]
        _update(self.optimizer, loss_per_node(outputs, graph.labels[graph.train]).mean())
        return (time.perf_counter() - start) * 1e3


def adjacency(graph: Graph) -> Any:
    """Return the adjacency in the fastest installed form: torch-sparse's, or else PyTorch's CSR.

    An edge_index would copy the features once for every edge.
    """
    A = graph.adjacency
    if importlib.util.find_spec("torch_sparse"):
        from torch_sparse import SparseTensor

        return SparseTensor(
            rowptr=A.indptr,
            col=A.indices,
            sparse_sizes=(graph.num_nodes, graph.num_nodes),
            is_sorted=True,
            trust_data=True,
        )
    return A.to_torch()


def _adam(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.Adam(model.parameters(), lr=0.01, fused=True)


def _update(optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
