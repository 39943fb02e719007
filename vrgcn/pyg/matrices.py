"""The matrices that PyG's layers average by: what each layer itself would compute of its edges.

    normalised: D^-1/2 (A + loops) D^-1/2, PyG's `gcn_norm`
    mean: D^-1 A, where D counts edges
    total: A
    cluster: D^-1 (A + I), its diagonal times 1 + lambda (ClusterGCNConv)
    chebyshev: 2 L / lambda_max - I (ChebConv)

D is of the nodes that receive, on both sides: PyG's reading of directed graphs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial

import torch
from torch import Tensor

from vrgcn.files.mistakes import InputError
from vrgcn.graph.graph import Graph
from vrgcn.graph.propagation import Propagation, sums_of_rows, without_loops
from vrgcn.graph.sparse import CSR


@dataclass(frozen=True)
class Wires:
    """The edges that a layer averages over.

    relation: the name of a relation; None in a graph without kinds
    weighted: whether the layer was given the weights of the edges
    reverse: whether messages go against the edges
    """

    relation: str | None = None
    weighted: bool = False
    reverse: bool = False

    def __str__(self) -> str:
        words = ("weighted" if self.weighted else "", "reverse" if self.reverse else "")
        return " ".join(filter(None, (self.relation or "edges", *words)))

    def adjacency(self, graph: Graph) -> CSR:
        """(nodes, nodes): A[u, v] is the weight of the message from v to u."""
        A = graph.adjacency if self.relation is None else graph.relations[self.relation].adjacency
        A = A.transposed if self.reverse else A
        return A if self.weighted or A.values is None else CSR(A.indptr, A.indices, None, A.columns)

    def spans(self, graph: Graph) -> tuple[range, range] | None:
        """The nodes that receive and that send; None if all do both."""
        if self.relation is None:
            return None
        relation = graph.relations[self.relation]
        ends = graph.kinds.range(relation.target), graph.kinds.range(relation.source)
        return ends[::-1] if self.reverse else ends


class LayerMatrix(str):
    """The name of a matrix, which makes it of a graph when it is called.

    A model names its matrices as it runs, so a name is all that has to be passed on: equal names
    are equal matrices.
    """

    _build: Callable[[Graph], Propagation]

    def __new__(cls, name: str, build: Callable[[Graph], Propagation]) -> LayerMatrix:
        made = super().__new__(cls, name)
        made._build = build
        return made

    def __call__(self, graph: Graph) -> Propagation:
        return self._build(graph)


@cache
def normalised(wires: Wires, *, loops: bool, improved: bool = False) -> LayerMatrix:
    """`gcn_norm`. loops: add a self-loop where a node has none; improved: of weight 2"""
    weight = _loop_weight(improved, wires.weighted) if loops else 0.0
    return LayerMatrix(f"{wires} normalised {weight:g}", partial(_normalised, wires, weight))


@cache
def mean(wires: Wires) -> LayerMatrix:
    """The (weighted) sum over the edges of a node, divided by their number."""
    return LayerMatrix(f"{wires} mean", partial(_mean, wires))


@cache
def total(wires: Wires, *, loop: float = 0.0) -> LayerMatrix:
    """The (weighted) sum over the edges of a node. loop: the weight of a self-loop to be added"""
    return LayerMatrix(f"{wires} sum {loop:g}", partial(_total, wires, loop))


@cache
def cluster(wires: Wires, *, loops: bool, diagonal: float) -> LayerMatrix:
    """ClusterGCN's matrix. diagonal: its lambda"""
    name = f"{wires} cluster {loops} {diagonal!r}"
    return LayerMatrix(name, partial(_cluster, wires, loops, diagonal))


@cache
def chebyshev(wires: Wires, *, normalization: str | None, largest: float | None) -> LayerMatrix:
    """The scaled Laplacian of ChebConv. largest: its lambda_max"""
    name = f"{wires} chebyshev {normalization} {largest}"
    return LayerMatrix(name, partial(_chebyshev, wires, normalization, largest))


def _loop_weight(improved: bool, weighted: bool) -> float:
    """The weight that PyG gives to a self-loop: versions differ where edges have no weights."""
    if not improved:
        return 1.0
    from torch_geometric.nn.conv.gcn_conv import gcn_norm

    # Node 1 has one edge of weight 1 and its loop: the loop's entry is loop / (1 + loop).
    edge = torch.tensor([[0], [1]])
    weight = torch.ones(1) if weighted else None
    edges, values = gcn_norm(edge, weight, 2, improved=True, add_self_loops=True)
    entry = float(values[(edges == 1).all(0)])
    return round(entry / (1 - entry), 3)


def _normalised(wires: Wires, weight: float, graph: Graph) -> Propagation:
    others, loops = without_loops(wires.adjacency(graph))
    spans = wires.spans(graph)
    loops = torch.zeros(graph.num_nodes, dtype=torch.float64) if loops is None else loops
    if weight:
        loops = torch.where((loops == 0) & _inside(graph, spans), weight, loops)
    degree = sums_of_rows(others) + loops
    if (degree < 0).any():
        raise InputError(
            "the weights of the edges of a node sum to less than 0: a layer that normalises by "
            "degrees needs weights that are not negative"
        )
    if spans is not None and spans[0] != spans[1]:
        raise InputError(
            f"relation {wires.relation!r} joins two kinds, and a layer normalises it by the "
            "degrees of one kind: use SAGEConv or GraphConv for it"
        )
    root = torch.where(degree > 0, degree.rsqrt(), 0)
    return _propagation(graph, loops * root * root, root, others, root, spans)


def _mean(wires: Wires, graph: Graph) -> Propagation:
    A = wires.adjacency(graph)
    others, loops = without_loops(A)
    left = A.counts.clamp(min=1).double().reciprocal()
    own = None if loops is None else loops * left
    return _propagation(graph, own, left, others, None, wires.spans(graph))


def _total(wires: Wires, loop: float, graph: Graph) -> Propagation:
    others, loops = without_loops(wires.adjacency(graph))
    if loop:
        loops = (0 if loops is None else loops) + loop * _inside(graph, wires.spans(graph)).double()
    return _propagation(graph, loops, None, others, None, wires.spans(graph))


def _cluster(wires: Wires, add: bool, diagonal: float, graph: Graph) -> Propagation:
    others, loops = without_loops(wires.adjacency(graph))
    spans = wires.spans(graph)
    if add:
        loops = _inside(graph, spans).double()
    elif loops is None:
        loops = torch.zeros(graph.num_nodes, dtype=torch.float64)
    left = (others.counts + loops).clamp(min=1).reciprocal()
    return _propagation(graph, (1 + diagonal) * loops * left, left, others, None, spans)


def _chebyshev(
    wires: Wires, normalization: str | None, largest: float | None, graph: Graph
) -> Propagation:
    from torch_geometric.nn import ChebConv

    A = wires.adjacency(graph)
    edges = torch.stack([A.indices, A.row_of_entry])
    weight = None if A.values is None else A.values.to(graph.dtype)
    edges, values = ChebConv.__norm__(
        None, edges, graph.num_nodes, weight, normalization, largest, dtype=graph.dtype
    )
    shape = (graph.num_nodes, graph.num_nodes)
    matrix = torch.sparse_coo_tensor(edges.flip(0), values, shape, check_invariants=False)
    return Propagation.from_matrix(matrix, graph.dtype)


def _inside(graph: Graph, spans: tuple[range, range] | None) -> Tensor:
    """(nodes,) bool: the nodes that receive."""
    inside = torch.zeros(graph.num_nodes, dtype=torch.bool)
    own = range(graph.num_nodes) if spans is None else spans[0]
    inside[own.start : own.stop] = True
    return inside


def _propagation(
    graph: Graph,
    own: Tensor | None,
    left: Tensor | None,
    adjacency: CSR,
    right: Tensor | None,
    spans: tuple[range, range] | None,
) -> Propagation:
    dtype = graph.dtype
    own, left, right = (None if part is None else part.to(dtype) for part in (own, left, right))
    P = Propagation(0.0 if own is None else own, left, adjacency, right, dtype)
    return P if spans is None else replace(P, spans=spans)
