"""Small problems with a dense answer: graphs, models, and the textbook's P @ h to compare with.

Everything is in float64, tables included, so that "equal" can mean 1e-10 and not 1e-5.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vrgcn.engine.batch import Batch
from vrgcn.engine.minibatches import MiniBatches
from vrgcn.engine.setup import propagation_of
from vrgcn.graph.graph import Graph
from vrgcn.models.models import GCN, GraphSAGE

FEATURES, HIDDEN, CLASSES = 5, 8, 3
# Without the moving frame: exact after an epoch for each table, which frames approach.
RAW, RAW_CV = "few/corrected/corrected/raw", "uniform/corrected/corrected/residual/raw"


def random_graph(nodes: int = 60, degree: int = 7, *, seed: int = 0) -> Graph:
    """Directed and weighted, degrees of about `degree`, a self-loop, and three isolated nodes."""
    generator = torch.Generator().manual_seed(seed)
    edges = torch.randint(nodes - 3, (2, nodes * degree), generator=generator)
    edges[:, 0] = 7
    weight = torch.randint(1, 17, (edges.shape[1],), generator=generator) / 8
    return Graph(
        edges,
        torch.randn(nodes, FEATURES, generator=generator, dtype=torch.float64),
        torch.randint(CLASSES, (nodes,), generator=generator),
        edge_weight=weight,
        train=torch.arange(nodes),
    )


def ring_edges(nodes: int) -> Tensor:
    """(2, 4 nodes): every node's neighbours are the two before it and the two after."""
    node = torch.arange(nodes)
    sources = torch.cat([(node + step) % nodes for step in (-2, -1, 1, 2)])
    return torch.stack([sources, node.repeat(4)])


def copies(edges: Tensor, features: Tensor, count: int) -> Graph:
    """A graph side by side with itself `count` times, without labels.

    Each copy draws its own samples and masks: one pass over all is `count` passes over one.
    """
    nodes = features.shape[0]
    shift = (torch.arange(count) * nodes).repeat_interleave(edges.shape[1])
    return Graph(edges.repeat(1, count) + shift, features.repeat(count, 1))


def gcn(layers: int = 2, **settings: Any) -> GCN:
    torch.manual_seed(layers)
    settings = {"dropout": 0.0, "layer_norm": False, **settings}
    return GCN(FEATURES, HIDDEN, CLASSES, layers=layers, **settings).double()


def graphsage(layers: int = 2, **settings: Any) -> GraphSAGE:
    torch.manual_seed(layers)
    settings = {"dropout": 0.0, "dense": 2, "layer_norm": True, "bias": True, **settings}
    return GraphSAGE(FEATURES, HIDDEN, CLASSES, layers=layers, **settings).double()


MODELS = {"gcn": gcn, "graphsage": graphsage}


class Embedded(nn.Module):
    """A model of one's own that changes the features before it first propagates them.

    dropout: a module applied to each propagated activation
    """

    def __init__(self, layers: int, dropout: nn.Module | None = None) -> None:
        super().__init__()
        torch.manual_seed(layers)
        self.embed = nn.Linear(FEATURES, HIDDEN)
        self.layers = nn.ModuleList(nn.Linear(HIDDEN, HIDDEN) for _ in range(layers))
        self.dropout = dropout or nn.Identity()
        self.double()

    def forward(self, x: Tensor, propagate: Any) -> Tensor:
        x = torch.tanh(self.embed(x))
        for layer in self.layers:
            x = torch.tanh(layer(propagate(self.dropout(x))))
        return x


class FunctionalDropout(nn.Module):
    """Dropout as a function, on the features too, its rate 0."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.first = nn.Linear(FEATURES, HIDDEN, dtype=torch.float64)
        self.last = nn.Linear(2 * HIDDEN, CLASSES, dtype=torch.float64)

    def forward(self, x: Tensor, propagate: Any) -> Tensor:
        h = torch.tanh(self.first(propagate(F.dropout(x, 0.0, self.training))))
        own = propagate.own(h)
        return self.last(torch.cat([own, propagate(F.dropout(h, 0.0, self.training))], dim=1))


class DensePropagate:
    """The textbook: P @ h for all nodes, remembering every h."""

    def __init__(self, P: Tensor) -> None:
        self.P = P
        self.received: list[Tensor] = []

    def __call__(self, h: Tensor) -> Tensor:
        self.received.append(h)
        return self.P @ h

    def own(self, h: Tensor) -> Tensor:
        return h

    def beside(self, h: Tensor) -> Tensor:
        return torch.cat([h, self(h)], dim=-1)


def dense_matrix(graph: Graph, rule: Any) -> Tensor:
    """P by the definitions, from the edge list: (nodes, nodes) float64."""
    sources, targets = graph.edge_index()
    A = torch.zeros(graph.num_nodes, graph.num_nodes, dtype=torch.float64)
    A[targets, sources] = graph.adjacency.weights(torch.float64)
    if rule == "mean":
        return A / A.sum(1, keepdim=True).clamp(min=1e-300)
    assert rule == "gcn"
    A = A + torch.eye(len(A), dtype=torch.float64)
    return A / (A.sum(1)[:, None] * A.sum(0)[None, :]).sqrt()


def exact_pass(model: nn.Module, graph: Graph, P: Tensor | None = None) -> tuple[Tensor, ...]:
    """(input of call 1, ..., input of call L, output) of the dense formula, in the model's mode."""
    P = dense_matrix(graph, propagation_of(model)) if P is None else P
    propagate = DensePropagate(P)
    output = model(graph.features, propagate)
    return (*propagate.received, output)


def double_minibatches(model: nn.Module, graph: Graph, **settings: Any) -> MiniBatches:
    """MiniBatches whose tables are float64."""
    return MiniBatches(model, graph, history_dtype="float64", **settings)


def epoch(batches: MiniBatches, model: nn.Module) -> Tensor:
    """Run and commit each minibatch at fixed weights; the outputs, NaN where none was visited."""
    rows: list[tuple[Batch, Tensor]] = []
    with torch.no_grad():
        for batch in batches:
            rows.append((batch, batch.run(model)))
            batch.commit()
    outputs = rows[0][1].new_full((batches.graph.num_nodes, rows[0][1].shape[1]), torch.nan)
    for batch, output in rows:
        outputs[batch.nodes] = output
    return outputs


def error(actual: Tensor, wanted: Tensor) -> float:
    """Largest difference, relative to the largest wanted value."""
    return float((actual - wanted).detach().abs().max() / wanted.detach().abs().max())
