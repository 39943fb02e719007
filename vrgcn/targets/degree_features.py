"""Features that the import made of degrees, made again of the edges that messages may use.

A graph without a table of nodes has such features (`structural_features`,
`vrgcn/data/tables/features.py`). They count every edge, and so they know validation and test pairs.
"""

from __future__ import annotations

import torch
from torch import Tensor

from vrgcn.graph.graph import Graph
from vrgcn.graph.sparse import CSR


def has_degree_features(graph: Graph) -> bool:
    """Whether all features of a graph were made of degrees."""
    names = graph.names.features
    return names is not None and "log_degree" in names and {*names} <= {*_made(_empty())}


def degree_features(graph: Graph, adjacency: CSR) -> Tensor:
    """(nodes, width) the same features, of the degrees of other edges."""
    assert graph.names.features is not None
    made = _made(adjacency)
    columns = [made[name] for name in graph.names.features]
    return torch.stack(columns, dim=1).to(graph.features.dtype)


def _made(A: CSR) -> dict[str, Tensor]:
    """Features of degrees by name: log(1 + degree) of a node and of its neighbours one and two
    steps away, 0 for a node without any."""
    into = A.counts.double().log1p()
    mean = _mean(A, into)
    largest = torch.zeros_like(into)
    largest.scatter_reduce_(0, A.row_of_entry, into[A.indices], "amax")
    return {
        "log_degree": into,
        "mean_neighbour_log_degree": mean,
        "max_neighbour_log_degree": largest,
        "mean_second_neighbour_log_degree": _mean(A, mean),
        "log_out_degree": torch.bincount(A.indices, minlength=A.columns).double().log1p(),
    }


def _mean(A: CSR, values: Tensor) -> Tensor:
    sums = torch.zeros_like(values).index_add_(0, A.row_of_entry, values[A.indices])
    return sums / A.counts.clamp(min=1)


def _empty() -> CSR:
    return CSR(torch.zeros(1, dtype=torch.int64), torch.zeros(0, dtype=torch.int64), None, 0)
