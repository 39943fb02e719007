"""What is visible until a moment: edges of other relations, and nodes that statistics may know."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from vrgcn.graph.graph import Graph
from vrgcn.graph.sparse import CSR
from vrgcn.graph.until import Until, nodes_until, time_of


def until_then(
    graph: Graph, until: Until, time_column: str | None, predicted: str
) -> dict[str, Tensor]:
    """(entries,) bool of each other relation: which edges are not later. An edge is later if its
    own time is, or unknown; or if one of its nodes is."""
    there = nodes_until(graph, until, time_column)
    found: dict[str, Tensor] = {}
    for name, part in graph.relations.items():
        if part.reverse_of is not None or name == predicted:
            continue
        A = part.adjacency
        keep = torch.ones(A.num_entries, dtype=torch.bool)
        times = time_of(graph.kept.get(name, {}), name, time_column, needed=False)
        if times is not None:
            keep &= until.not_later(times)
        if there is not None:
            keep &= there[A.indices] & there[A.row_of_entry]
        if times is not None or not bool(keep.all()):
            found[name] = keep
    return found


def rules_until(graph: Graph, until: Until) -> tuple[str, ...]:
    """What is done against knowledge of later things, a sentence each."""
    dated = [name for name in graph.relations if graph.kept.get(name)]
    others = f", nor does one of a relation with times ({', '.join(dated)})" if dated else ""
    return (
        f"no edge later than {until} carries a message{others}",
        f"the scaling of features knows nodes alone that an edge until {until} names",
    )


def named_nodes(adjacencies: Iterable[CSR], num_nodes: int) -> Tensor:
    """The nodes at the ends of edges, ascending."""
    named = torch.zeros(num_nodes, dtype=torch.bool)
    for A in adjacencies:
        named[A.indices] = True
        named[A.row_of_entry] = True
    return named.nonzero()[:, 0]
