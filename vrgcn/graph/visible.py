"""The edges of a graph that are there by some moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from vrgcn.graph.graph import Graph
from vrgcn.graph.relations import kept_entries
from vrgcn.graph.sparse import CSR
from vrgcn.graph.until import Until, nodes_until, time_of


@dataclass(frozen=True, eq=False)
class Visible:
    """What training sees of a graph whose nodes are split by time.

    entries: (entries,) bool by relation, "edges" in a graph without kinds; a relation that is not
        here keeps all of its edges
    nodes: (nodes,) bool, which nodes are there by the end of training
    rules: what was done against leaks, a sentence each
    """

    entries: Mapping[str, Tensor]
    nodes: Tensor
    rules: tuple[str, ...] = ()

    def adjacency(self, relation: str, A: CSR) -> CSR:
        """The visible edges of a relation."""
        keep = self.entries.get(relation)
        return A if keep is None else kept_entries(A, keep)


def until_then(graph: Graph, until: Until, time_column: str | None) -> dict[str, Tensor]:
    """(entries,) bool of each relation with times, or with nodes that come later: which edges are
    not later. An edge is later if its own time is, or unknown; or if one of its nodes is."""
    there = nodes_until(graph, until, time_column)
    visible: dict[str, Tensor] = {}
    for name, A in graph.edges.items():
        keep = torch.ones(A.num_entries, dtype=torch.bool)
        times = time_of(graph.kept.get(name, {}), name, time_column, needed=False)
        if times is not None:
            keep &= until.not_later(times)
        if there is not None:
            keep &= there[A.indices] & there[A.row_of_entry]
        if times is not None or not bool(keep.all()):
            visible[name] = keep
    return visible


def rules_of(graph: Graph) -> tuple[str, ...]:
    """What is done against leaks in a graph whose nodes have times, a sentence each."""
    if graph.visible is not None:
        return graph.visible.rules
    return () if graph.dated is None else graph.dated.rules
