"""Propagation matrices: how a node averages its neighbours.

    P = diag(own) + diag(left) · A · diag(right)

A is the graph's own adjacency: P adds a few vectors of the size of the nodes and copies nothing of
the size of the edges. The diagonal is kept apart because the two are treated apart everywhere: a
node's own activation is always at hand, so its own edge is always exact, and only the *other*
neighbours are sampled or read from the history.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import torch
from torch import Tensor

from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.graph.graph import Graph
from vrgcn.graph.relations import Relation, kept_entries
from vrgcn.graph.sparse import CSR, full_precision, offsets, scale_rows, select_rows

CHUNK_COST = 1 << 20  # entries of P plus a little per node: some tens of megabytes
_NODE_COST = 64


@dataclass(frozen=True, eq=False)
class Propagation:
    """P = diag(own) + diag(left) · adjacency · diag(right).

    own: (nodes,), or one number for all nodes: 0 for a mean of the others, 1 for P = I
    left, right: (nodes,); None if all are 1
    adjacency: (nodes, nodes) CSR, nothing on its diagonal, columns ascending
    dtype: of the entries of P
    spans: of a relation between two kinds, the ranges that its rows and its columns lie in: P is
        asked only for the rows of nodes that have neighbours; None: of all nodes
    """

    own: Tensor | float
    left: Tensor | None
    adjacency: CSR
    right: Tensor | None
    dtype: torch.dtype
    spans: tuple[range, range] | None = None

    @property
    def num_nodes(self) -> int:
        return self.adjacency.num_rows

    def degrees(self, nodes: Tensor) -> Tensor:
        """(len(nodes),): how many others each node averages."""
        indptr = self.adjacency.indptr
        return indptr.index_select(0, nodes + 1) - indptr.index_select(0, nodes)

    def reached(self, nodes: Tensor) -> Tensor | None:
        """(rows,) ascending: the places among `nodes` of those whose rows are not zero, where P is
        of a relation that only some have; None if all rows count."""
        if self.spans is None:
            return None
        some = self.degrees(nodes) > 0
        if isinstance(self.own, Tensor):
            some |= self.own.index_select(0, nodes) != 0
        return some.nonzero()[:, 0]

    @property
    def has_own(self) -> bool:
        """Whether a node's own activation counts in its average."""
        return isinstance(self.own, Tensor) or self.own != 0

    def own_rows(self, nodes: Tensor) -> Tensor | float:
        """(len(nodes),): the weights of the nodes' own activations, or one number for all."""
        return self.own.index_select(0, nodes) if isinstance(self.own, Tensor) else self.own

    def rows(self, nodes: Tensor) -> CSR:
        """Rows of P without its diagonal: (len(nodes), nodes)."""
        return self.take(nodes, *self.adjacency.entries(nodes))

    def whole_rows(self, nodes: Tensor) -> CSR:
        """Rows of P with its diagonal: (len(nodes), nodes)."""
        others, own = self.rows(nodes), self.own_rows(nodes)
        if not isinstance(own, Tensor) and own == 0:
            return others
        if not isinstance(own, Tensor):
            own = torch.full((len(nodes),), own, dtype=self.dtype)
        rows = torch.cat([others.row_of_entry, torch.arange(len(nodes))])
        order = torch.argsort(rows, stable=True)
        indices = torch.cat([others.indices, nodes])[order]
        values = torch.cat([others.weights(self.dtype), own])[order]
        return CSR(offsets(others.counts + 1), indices, values, others.columns)

    def take(self, nodes: Tensor, indptr: Tensor, entries: Tensor) -> CSR:
        """Part of these rows: the entries at given positions of the adjacency, (len(nodes), nodes).

        indptr: (len(nodes) + 1,), where each node's start among `entries`
        """
        part = self.adjacency.take(indptr, entries)
        values = None if part.values is None else part.values.to(self.dtype)
        if self.right is not None:
            right = self.right.index_select(0, part.indices)
            values = right if values is None else values * right
        scale = None if self.left is None else self.left.index_select(0, nodes)
        return CSR(indptr, part.indices, values, part.columns, scale)

    def product(self, h: Tensor, nodes: Tensor) -> Tensor:
        """Rows of P h for some nodes: (nodes, width) -> (len(nodes), width), in h's layout."""
        others = self.rows(nodes) @ h
        own = self.own_rows(nodes)
        if not isinstance(own, Tensor) and own == 0:
            return others
        rows = select_rows(h, nodes)
        return torch.add(scale_rows(own, rows.to(full_precision(rows.dtype))), others)

    def __matmul__(self, h: Tensor) -> Tensor:
        """P h for all nodes: (nodes, width) -> (nodes, width)."""
        return self.product(h, torch.arange(self.num_nodes))

    @cached_property
    def transposed(self) -> Propagation:
        """Pᵀ = diag(own) + diag(right) · Aᵀ · diag(left); Aᵀ is A itself where it is symmetric."""
        A = self.adjacency
        reversed_edges = A if is_symmetric(A) else A.transposed
        spans = None if self.spans is None else self.spans[::-1]
        return Propagation(self.own, self.right, reversed_edges, self.left, self.dtype, spans)

    def to_dense(self) -> Tensor:
        """(nodes, nodes), for small graphs."""
        own = self.own if isinstance(self.own, Tensor) else torch.full((self.num_nodes,), self.own)
        rows = self.rows(torch.arange(self.num_nodes))
        return torch.diag(own.to(self.dtype)) + rows.to_torch(self.dtype).to_dense()

    @staticmethod
    def from_matrix(matrix: Any, dtype: torch.dtype = torch.float32) -> Propagation:
        """Build from a matrix of the user's own: (nodes, nodes), a torch (dense, COO, CSR) or scipy
        matrix.

        Entry [u, v] is the weight that node v's activation has in node u's average.
        """
        if hasattr(matrix, "tocoo"):  # scipy
            coo = matrix.tocoo()
            rows, columns = torch.as_tensor(coo.row), torch.as_tensor(coo.col)
            values = torch.as_tensor(coo.data)
            shape = tuple(coo.shape)
        else:
            matrix = torch.as_tensor(matrix).cpu()
            shape = tuple(matrix.shape)
        if len(shape) != 2 or shape[0] != shape[1]:
            raise InputError(f"a propagation matrix must be square, not of shape {shape}")
        if isinstance(matrix, Tensor):
            sparse = matrix.to_sparse_coo().coalesce()
            rows, columns = sparse.indices()
            values = sparse.values()
        values = values.to(dtype)
        if not torch.isfinite(values).all():
            raise InputError("the propagation matrix holds NaN or infinite entries")
        entries = _from_entries(rows.long(), columns.long(), values, shape[0])
        adjacency, loops = without_loops(entries)
        return Propagation(0.0 if loops is None else loops.to(dtype), None, adjacency, None, dtype)


class Sums(Protocol):
    """Sums of A that its normalisation is made of, (nodes,) float64 each."""

    @property
    def rows(self) -> Tensor: ...

    @property
    def columns(self) -> Tensor: ...

    @property
    def loops(self) -> Tensor | None:
        """The diagonal; None if nothing is on it."""


# The vectors `own`, `left` and `right` of a `Propagation`, in float64.
Sides = tuple[Tensor | float, Tensor | None, Tensor | None]


def gcn_sides(sums: Sums) -> Sides:
    """Kipf and Welling's P = D^-1/2 (A + I) D^-1/2.

    Directed graphs: P[u, v] = Ã[u, v] / sqrt(row degree of u * column degree of v).
    """
    left, right, loops = (1 + sums.rows).rsqrt(), (1 + sums.columns).rsqrt(), sums.loops
    return left * right if loops is None else (1 + loops) * left * right, left, right


def symmetric_sides(sums: Sums) -> Sides:
    """LightGCN's P = D^-1/2 A D^-1/2, no self-loop added; GCN's of one relation, of which a node's
    own activation is none.

    Directed graphs: P[u, v] = A[u, v] / sqrt(row degree of u * column degree of v).
    """
    left, right = (torch.where(s > 0, s, 1).rsqrt() for s in (sums.rows, sums.columns))
    return 0.0 if sums.loops is None else sums.loops * left * right, left, right


def mean_sides(sums: Sums) -> Sides:
    """GraphSAGE's P = D^-1 A, no self-loop added. A node without neighbours averages to zero."""
    left = torch.where(sums.rows > 0, sums.rows, 1).reciprocal()
    return 0.0 if sums.loops is None else sums.loops * left, left, None


def adjacency_sides(sums: Sums) -> Sides:
    """P = A: sums over the neighbours, of ones the degree."""
    return 0.0 if sums.loops is None else sums.loops, None, None


SIDES: dict[str, Callable[[Sums], Sides]] = {
    "gcn": gcn_sides,
    "symmetric": symmetric_sides,
    "mean": mean_sides,
    "adjacency": adjacency_sides,
}
RELATION_SIDES = SIDES | {"gcn": symmetric_sides}


@dataclass(frozen=True)
class _GraphSums:
    graph: Graph
    loops: Tensor | None

    @property
    def rows(self) -> Tensor:
        return row_sums(self.graph)

    @property
    def columns(self) -> Tensor:
        return column_sums(self.graph)


def _by_sides(name: str, graph: Graph, sides: Callable[[Sums], Sides]) -> Propagation:
    _refuse_negative(graph, name)
    others, loops = without_loops(graph.adjacency)
    own, left, right = (
        side.to(graph.dtype) if isinstance(side, Tensor) else side
        for side in sides(_GraphSums(graph, loops))
    )
    assert own is not None
    assert not isinstance(left, float)
    assert not isinstance(right, float)
    return Propagation(own, left, others, right, graph.dtype)


def gcn(graph: Graph) -> Propagation:
    """See `gcn_sides`."""
    return _by_sides("gcn", graph, gcn_sides)


def symmetric(graph: Graph) -> Propagation:
    """See `symmetric_sides`."""
    return _by_sides("symmetric", graph, symmetric_sides)


def mean(graph: Graph) -> Propagation:
    """See `mean_sides`."""
    return _by_sides("mean", graph, mean_sides)


def identity(graph: Graph) -> Propagation:
    """P = I: any model becomes an MLP of the same widths, the speed limit."""
    nothing = CSR.empty(graph.num_nodes, graph.num_nodes)
    return Propagation(1.0, None, nothing, None, graph.dtype)


def adjacency(graph: Graph) -> Propagation:
    """See `adjacency_sides`."""
    return _by_sides("adjacency", graph, adjacency_sides)


def both_directions(graph: Graph) -> Propagation:
    """P = A + Aᵀ: sums over the neighbours in both directions, without self-loops."""
    _refuse_negative(graph, "both")
    A, _ = without_loops(graph.adjacency)
    rows, values = A.row_of_entry, A.weights(graph.dtype).repeat(2)
    ends = torch.cat([rows, A.indices]), torch.cat([A.indices, rows])
    return Propagation(0.0, None, _from_entries(*ends, values, A.num_rows), None, graph.dtype)


def of_relation(name: str, graph: Graph, relation: Relation) -> Propagation:
    """The matrix of a rule for one relation of a graph: only its edges, normalised by
    themselves."""
    edges = graph.only(relation)
    if name in RELATION_SIDES:
        P = _by_sides(name, edges, RELATION_SIDES[name])
    else:
        P = build_propagation(name, edges)
    spans = graph.kinds.range(relation.target), graph.kinds.range(relation.source)
    return replace(P, spans=spans)


PROPAGATIONS: dict[str, Callable[[Graph], Propagation]] = {
    "gcn": gcn,
    "symmetric": symmetric,
    "mean": mean,
    "identity": identity,
    "adjacency": adjacency,
    "both": both_directions,
}

# Values that functions accept for P: a name, a matrix (see Propagation.from_matrix), or a rule of
# the user's own from a graph to a matrix; and a dict of these by relation, for models that name
# relations.
Rule = str | Propagation | Tensor | Callable[[Graph], Propagation]
PropagationLike = Rule | Mapping[str, Rule]


def build_propagation(rule: Rule, graph: Graph) -> Propagation:
    """The propagation matrix of `graph` by name, by one's own rule, or as it is given."""
    if isinstance(rule, Propagation):
        P = rule
    elif isinstance(rule, str) and rule in PROPAGATIONS:
        P = PROPAGATIONS[rule](graph)
    elif callable(rule):
        P = rule(graph)
    elif not isinstance(rule, str):
        P = Propagation.from_matrix(rule, graph.dtype)
    else:
        raise InputError(f"propagation {rule!r} is none of {', '.join(PROPAGATIONS)}")
    if P.num_nodes != graph.num_nodes:
        raise InputError(
            f"the propagation matrix has {P.num_nodes} rows and the graph {graph.num_nodes} nodes"
        )
    return P


def chunks(nodes: Tensor, *matrices: Propagation) -> Iterator[Tensor]:
    """Runs of nodes whose rows have about CHUNK_COST entries: hubs make shorter runs."""
    cost = torch.full((len(nodes),), _NODE_COST)
    for P in matrices:
        cost += P.degrees(nodes)
    bucket = torch.div(cost.cumsum(0), CHUNK_COST, rounding_mode="floor")
    sizes = torch.unique_consecutive(bucket, return_counts=True)[1]
    yield from nodes.split(sizes.tolist())


def neighbours(matrices: Iterable[Propagation], nodes: Tensor) -> Tensor:
    """(len(nodes),): how many neighbours each has over all relations."""
    return sum((P.degrees(nodes) for P in matrices), start=torch.zeros_like(nodes))


def with_neighbours(nodes: Tensor, *matrices: Propagation) -> Tensor:
    """The nodes and all that the matrices average for them, ascending."""
    inside = torch.zeros(matrices[0].num_nodes, dtype=torch.bool)
    inside[nodes] = True
    for P in matrices:
        for chunk in chunks(nodes, P):
            _, entries = P.adjacency.entries(chunk)
            inside[P.adjacency.indices.index_select(0, entries)] = True
    return inside.nonzero()[:, 0]


def without_loops(A: CSR) -> tuple[CSR, Tensor | None]:
    """The matrix without its diagonal, and the diagonal (nodes,) in float64.

    The matrix itself and None if nothing is on the diagonal. Only a graph with self-loops is
    copied.
    """
    loops = torch.zeros(A.num_rows, dtype=torch.float64)
    any_loop = False
    for rows, part in row_runs(A):
        at = part.indices == rows[0] + part.row_of_entry
        if at.any():
            any_loop = True
            loops.index_add_(0, part.indices[at], part.weights(torch.float64)[at])
    if not any_loop:
        return A, None
    others = kept_entries(A, A.indices != A.row_of_entry)
    if "transposed" in vars(A):  # known already, and not to be made again
        others = others.with_transposed(without_loops(A.transposed)[0])
    return others, loops


def row_sums(graph: Graph) -> Tensor:
    """(nodes,) float64, of A; of a part of a larger graph, those of the larger one's."""
    return sums_of_rows(graph.adjacency) if graph.sums is None else graph.sums[0]


def sums_of_rows(A: CSR) -> Tensor:
    """(rows,) float64."""
    if A.values is None:
        return A.counts.double()
    sums = torch.zeros(A.num_rows, dtype=torch.float64)
    for rows, part in row_runs(A):
        sums.index_add_(0, rows[0] + part.row_of_entry, part.weights(torch.float64))
    return sums


def column_sums(graph: Graph) -> Tensor:
    """(nodes,) float64, of A; of a part of a larger graph, those of the larger one's."""
    A = graph.adjacency
    if graph.sums is not None:
        return graph.sums[1]
    if A.values is None:
        return torch.bincount(A.indices, minlength=A.columns).double()
    sums = torch.zeros(A.columns, dtype=torch.float64)
    for _, part in row_runs(A):
        sums.index_add_(0, part.indices, part.weights(torch.float64))
    return sums


def row_runs(A: CSR, entries: int = CHUNK_COST) -> Iterator[tuple[Tensor, CSR]]:
    """The matrix in runs of rows of about so many entries, so that nothing of the size of all is
    made."""
    bucket = torch.div(A.indptr[:-1], entries, rounding_mode="floor")
    sizes = torch.unique_consecutive(bucket, return_counts=True)[1].tolist()
    for rows in torch.arange(A.num_rows).split(sizes):
        first, last = int(A.indptr[rows[0]]), int(A.indptr[rows[-1] + 1])
        values = None if A.values is None else A.values[first:last]
        indptr = A.indptr[rows[0] : rows[-1] + 2] - first
        yield rows, CSR(indptr, A.indices[first:last], values, A.columns)


def is_symmetric(A: CSR) -> bool:
    """Whether A = Aᵀ, for a square matrix without repeated entries.

    The entries (u, v, value) and (v, u, value) are compared as sets, each by the sum of a 64-bit
    hash over its members, so that nothing of the size of the entries is made; two different sets
    agree by chance once in 2^64.
    """
    difference = 0
    for rows, part in row_runs(A):
        u, v = rows[0] + part.row_of_entry, part.indices
        value = 0 if part.values is None else part.values.double().view(torch.int64)
        difference += int(_hash(u, v, value).sum() - _hash(v, u, value).sum())
    return difference % (1 << 64) == 0


def _hash(u: Tensor, v: Tensor, value: Tensor | int) -> Tensor:
    """(entries,) int64, by multiplications that overflow and shifts (after splitmix64)."""
    mixed = (u * -0x61C8864680B583EB + v) * -0x4B47D0C5A1B6E4D3 + value
    for factor in (-0x40A7B892E31B1A47, -0x6B2FB644ECCEEE15):
        mixed = (mixed ^ (mixed >> 30)) * factor
    return mixed ^ (mixed >> 31)


def _refuse_negative(graph: Graph, name: str) -> None:
    A = graph.adjacency
    if A.values is None:
        return
    # In pieces: of a graph on disk, what is as long as the edges may not fit in memory.
    pieces = enumerate(A.values.split(CHUNK_COST))
    bad = torch.cat([(part < 0).nonzero()[:, 0] + number * CHUNK_COST for number, part in pieces])
    if len(bad):
        entry = bad[0]
        row = torch.searchsorted(A.indptr, entry, right=True) - 1
        ends = torch.stack([A.indices[entry], row]).numpy()
        source, target = graph.names.node_ids(ends).to_pylist()
        count = "1 edge has" if len(bad) == 1 else f"{len(bad)} edges have"
        raise InputError(
            f"{count} a negative weight, first: {float(A.values[entry]):g} on "
            f"the edge from {source} to {target}. An average by '{name}' needs weights that are "
            f"not negative: import the tables again without the weights ({setting('drop')} and the "
            "name of their column) or with others, such as their size without the sign; in Python, "
            "a matrix of your own takes any (Propagation.from_matrix)"
        )


def _from_entries(rows: Tensor, columns: Tensor, values: Tensor, num_nodes: int) -> CSR:
    """From entries in any order; those at the same place are summed."""
    key, group = torch.unique(rows * num_nodes + columns, return_inverse=True)
    summed = torch.zeros(len(key), dtype=values.dtype).index_add_(0, group, values)
    rows = torch.div(key, num_nodes, rounding_mode="floor")
    indptr = offsets(torch.bincount(rows, minlength=num_nodes))
    return CSR(indptr, key - rows * num_nodes, summed, num_nodes)
