"""What is said of pairs that are split by time, and the nodes that statistics may know."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from vrgcn.graph.graph import Graph
from vrgcn.graph.sparse import CSR
from vrgcn.graph.until import Until


def rules_until(graph: Graph, until: Until) -> tuple[str, ...]:
    """What is done against knowledge of later things, a sentence each."""
    dated = [name for name in graph.edges if graph.kept.get(name) and graph.kinds.named]
    others = f", nor does one of a relation with times ({', '.join(dated)})" if dated else ""
    return (
        f"no edge later than {until} carries a message{others}",
        f"features are scaled using only nodes with an edge up to {until}",
    )


def to_predict(graph: Graph, edges: Mapping[str, CSR], features: Tensor, train: Tensor) -> Graph:
    """The graph without labels, with the edges that messages may use.

    edges: by relation, of those that lose some
    train: nodes that the scaling of the features may learn from
    """
    return graph.replace(
        edges=edges,
        features=features,
        scaling=graph.scaling,
        labels=None,
        train=train,
        val=train[:0],
        test=train[:0],
    )


def named_nodes(adjacencies: Iterable[CSR], num_nodes: int) -> Tensor:
    """The nodes at the ends of edges, ascending."""
    named = torch.zeros(num_nodes, dtype=torch.bool)
    for A in adjacencies:
        named[A.indices] = True
        named[A.row_of_entry] = True
    return named.nonzero()[:, 0]
