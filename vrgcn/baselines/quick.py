"""Which linear models are quick: counted, not timed, so the same graph always has the same."""

from __future__ import annotations

from vrgcn.graph.graph import Graph
from vrgcn.graph.sparse import num_entries

_WORK = 5e9  # multiplications of a fit at most: some seconds of one core
_PASSES = 200  # over the inputs that a fit makes at least, with gradients


def is_quick(graph: Graph, hops: int, outputs: int) -> bool:
    """Return True if a linear model of so many hops takes some seconds at most."""
    return _work(graph, hops, outputs) <= _WORK


def _work(graph: Graph, hops: int, outputs: int) -> float:
    """Multiplications of a fit."""
    entries = num_entries(graph.features)
    return _PASSES * outputs * ((hops + 1) * entries + hops * graph.num_edges)
