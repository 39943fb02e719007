"""Propagation matrices: how a node averages its neighbours.

P is kept as its diagonal and its other entries apart, because the two are treated apart
everywhere: a node's own activation is always at hand, so its own edge is always exact, and only
the *other* neighbours are sampled or read from the history.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from vrgcn.graph.graph import Graph
from vrgcn.graph.sparse import CSR, offsets, scale_rows


@dataclass(frozen=True)
class Propagation:
    """P = diag(diagonal) + neighbours.

    diagonal: (nodes,), the weight of each node's own activation
    neighbours: (nodes, nodes) CSR, the weights of the others', nothing on its diagonal
    """

    diagonal: Tensor
    neighbours: CSR

    @property
    def num_nodes(self) -> int:
        return len(self.diagonal)

    def rows(self, nodes: Tensor) -> tuple[Tensor, CSR]:
        """Rows of P for some nodes: (len(nodes),) diagonal and (len(nodes), nodes) neighbours."""
        return self.diagonal.index_select(0, nodes), self.neighbours.rows(nodes)

    def __matmul__(self, h: Tensor) -> Tensor:
        """P h for all nodes: (nodes, width) -> (nodes, width)."""
        return scale_rows(self.diagonal, h) + self.neighbours @ h

    def to_dense(self) -> Tensor:
        """(nodes, nodes), for small graphs."""
        return torch.diag(self.diagonal) + self.neighbours.to_torch().to_dense()

    @staticmethod
    def from_matrix(matrix: Any, dtype: torch.dtype = torch.float32) -> Propagation:
        """A matrix of one's own: (nodes, nodes), a torch (dense, COO, CSR) or scipy matrix.

        Entry [u, v] is the weight that node v's activation has in node u's average.
        """
        if hasattr(matrix, "tocoo"):  # scipy
            coo = matrix.tocoo()
            rows, columns = torch.as_tensor(coo.row), torch.as_tensor(coo.col)
            values = torch.as_tensor(coo.data)
            shape = tuple(coo.shape)
        else:
            matrix = torch.as_tensor(matrix)
            shape = tuple(matrix.shape)
        if len(shape) != 2 or shape[0] != shape[1]:
            raise ValueError(f"a propagation matrix must be square, not of shape {shape}")
        if isinstance(matrix, Tensor):
            sparse = matrix.to_sparse_coo().coalesce()
            rows, columns = sparse.indices()
            values = sparse.values()
        values = values.to(dtype)
        if not torch.isfinite(values).all():
            raise ValueError("the propagation matrix holds NaN or infinite entries")
        return _from_entries(rows.long(), columns.long(), values, shape[0])


def gcn(graph: Graph) -> Propagation:
    """Kipf and Welling's P = D^-1/2 (A + I) D^-1/2.

    Directed graphs: P[u, v] = Ã[u, v] / sqrt(row degree of u * column degree of v).
    """
    _refuse_negative(graph, "gcn")
    A = graph.adjacency
    rows, weight = A.row_of_entry, A.values.double()
    ones = torch.ones(graph.num_nodes, dtype=torch.float64)
    row_degree = ones.index_add(0, rows, weight)
    column_degree = ones.index_add(0, A.indices, weight)
    left, right = row_degree.rsqrt(), column_degree.rsqrt()
    weight = weight.mul_(left[rows]).mul_(right[A.indices]).to(graph.features.dtype)
    own = (left * right).to(graph.features.dtype)
    P = _split_diagonal(A.indptr, A.indices, weight, rows)
    return Propagation(P.diagonal + own, P.neighbours)


def mean(graph: Graph) -> Propagation:
    """GraphSAGE's P = D^-1 A, no self-loop added. A node without neighbours averages to zero."""
    _refuse_negative(graph, "mean")
    A = graph.adjacency
    rows, weight = A.row_of_entry, A.values.double()
    degree = torch.zeros(graph.num_nodes, dtype=torch.float64).index_add_(0, rows, weight)
    weight = weight.div_(degree.clamp_(min=torch.finfo(torch.float64).tiny)[rows])
    P = _split_diagonal(A.indptr, A.indices, weight.to(graph.features.dtype), rows)
    if graph.weighted:
        return P
    same = degree.reciprocal().to(graph.features.dtype)
    return Propagation(P.diagonal, replace(P.neighbours, row_values=same))


def identity(graph: Graph) -> Propagation:
    """P = I: any model becomes an MLP of the same widths, the speed limit."""
    ones = torch.ones(graph.num_nodes, dtype=graph.features.dtype)
    none = torch.empty(0, dtype=torch.int64)
    nothing = CSR(offsets(none.new_zeros(graph.num_nodes)), none, ones[:0], graph.num_nodes)
    return Propagation(ones, nothing)


PROPAGATIONS: dict[str, Callable[[Graph], Propagation]] = {
    "gcn": gcn,
    "mean": mean,
    "identity": identity,
}

# What functions that need P accept: a name, a matrix (see Propagation.from_matrix), or one's own
# rule from a graph to a matrix.
PropagationLike = str | Propagation | Tensor | Callable[[Graph], Propagation]


def build_propagation(rule: PropagationLike, graph: Graph) -> Propagation:
    """The propagation matrix of `graph` by name, by one's own rule, or as it is given."""
    if isinstance(rule, Propagation):
        P = rule
    elif isinstance(rule, str) and rule in PROPAGATIONS:
        P = PROPAGATIONS[rule](graph)
    elif callable(rule):
        P = rule(graph)
    elif not isinstance(rule, str):
        P = Propagation.from_matrix(rule, graph.features.dtype)
    else:
        raise ValueError(f"propagation {rule!r} is none of {', '.join(PROPAGATIONS)}")
    if P.num_nodes != graph.num_nodes:
        raise ValueError(
            f"the propagation matrix has {P.num_nodes} rows and the graph {graph.num_nodes} nodes"
        )
    return P


def _refuse_negative(graph: Graph, name: str) -> None:
    if not graph.weighted:
        return
    A = graph.adjacency
    bad = A.values < 0
    if bad.any():
        entry = int(bad.nonzero()[0, 0])
        raise ValueError(
            f"propagation '{name}' cannot take negative edge weights: {int(bad.sum())} are, first: "
            f"{float(A.values[entry]):g} on the edge from {int(A.indices[entry])} to "
            f"{int(A.row_of_entry[entry])}; pass a matrix of your own (Propagation.from_matrix)"
        )


def _from_entries(rows: Tensor, columns: Tensor, values: Tensor, num_nodes: int) -> Propagation:
    """From entries in any order; those at the same place are summed."""
    key, group = torch.unique(rows * num_nodes + columns, return_inverse=True)
    summed = torch.zeros(len(key), dtype=values.dtype).index_add_(0, group, values)
    rows = torch.div(key, num_nodes, rounding_mode="floor")
    indptr = offsets(torch.bincount(rows, minlength=num_nodes))
    return _split_diagonal(indptr, key - rows * num_nodes, summed, rows)


def _split_diagonal(indptr: Tensor, columns: Tensor, values: Tensor, rows: Tensor) -> Propagation:
    num_nodes = len(indptr) - 1
    diagonal = torch.zeros(num_nodes, dtype=values.dtype)
    own = columns == rows
    if own.any():
        diagonal[rows[own]] = values[own]
        columns, values = columns[~own], values[~own]
        indptr = offsets(torch.bincount(rows[~own], minlength=num_nodes))
    return Propagation(diagonal, CSR(indptr, columns, values, num_nodes))
