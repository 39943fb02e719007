"""Relations: edges from nodes of one kind to nodes of one kind, each with its reverse unless its
edges lead one way only, as from the past to the future; and adjacency matrices
from edges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from vrgcn.files.mistakes import InputError
from vrgcn.graph.kinds import ONE, Kinds
from vrgcn.graph.pairs import EDGES
from vrgcn.graph.sparse import CSR, offsets


def kept_entries(A: CSR, keep: Tensor) -> CSR:
    """Part of the entries of A. keep: (entries,) bool"""
    counts = torch.bincount(A.row_of_entry[keep], minlength=A.num_rows)
    values = None if A.values is None else A.values[keep]
    return CSR(offsets(counts), A.indices[keep], values, A.columns, A.scale)


def build_adjacency(edges: Tensor, weight: Tensor | None, num_nodes: int, undirected: bool) -> CSR:
    """A from edges (2, edges): repeated ones are merged, their weights summed."""
    if undirected:
        loop = edges[0] == edges[1]
        edges = torch.cat([edges, edges[:, ~loop].flip(0)], dim=1)
        weight = None if weight is None else torch.cat([weight, weight[~loop]])
    key = edges[1] * num_nodes + edges[0]
    ascending = bool((key[1:] > key[:-1]).all())
    values = None if weight is None else weight.float()
    if not ascending and weight is None:
        key = torch.unique(key)
    elif not ascending and weight is not None:
        key, group = torch.unique(key, return_inverse=True)
        values = torch.zeros(len(key), dtype=weight.dtype).index_add_(0, group, weight).float()
        if not torch.isfinite(values).all():
            raise InputError("the weights of repeated edges sum to more than 32 bits hold")
    rows = torch.div(key, num_nodes, rounding_mode="floor")
    counts = torch.bincount(rows, minlength=num_nodes)
    return CSR(offsets(counts), key - rows * num_nodes, values, num_nodes)


# Source kind, relation, target kind, as in PyG's edge types.
Triple = tuple[str, str, str]
REVERSE = "rev_"
ONLY: Triple = (ONE, EDGES, ONE)  # of a graph of one table


@dataclass(frozen=True, eq=False)
class Relation:
    """Edges of one meaning between two kinds.

    triple: source kind, relation, target kind
    adjacency: (nodes, nodes) CSR over the numbering of all nodes; A[u, v] is the weight of the edge
        from v, of the source kind, to u, of the target kind
    reverse_of: the name of the relation that this one reverses; None if it was given
    undirected: every edge is there in both directions; such a relation has no reverse
    one_way: messages never go against the edges; such a relation has no reverse in any graph that
        is made of this one
    """

    triple: Triple
    adjacency: CSR
    reverse_of: str | None = None
    undirected: bool = False
    one_way: bool = False

    def __post_init__(self) -> None:
        if self.undirected and self.one_way:
            raise InputError(
                f"relation {self.name!r} cannot be undirected and one-way: choose one of them"
            )

    @staticmethod
    def only(adjacency: CSR) -> Relation:
        """The edges of a graph of one table."""
        return Relation(ONLY, adjacency)

    @property
    def name(self) -> str:
        return relation_name(self.triple)

    @property
    def has_reverse(self) -> bool:
        """Whether it gets a reverse; edges of a graph of one table have none."""
        return not self.undirected and not self.one_way and self.source != ONE

    @property
    def source(self) -> str:
        return self.triple[0]

    @property
    def target(self) -> str:
        return self.triple[2]

    @property
    def num_edges(self) -> int:
        return self.adjacency.num_entries

    @property
    def weighted(self) -> bool:
        return self.adjacency.values is not None

    def reversed(self) -> Relation:
        """The same edges in the other direction; both know each other's matrix as their
        transpose."""
        adjacency = self.adjacency.transposed.with_transposed(self.adjacency)
        return Relation(reverse_triple(self.triple), adjacency, self.name)


@dataclass(frozen=True)
class Schema:
    """What a model may know of a graph of several kinds.

    ends: source and target kind of each relation, by name; empty in a graph of one table
    weighted: the relations whose edges have weights; None stands for the edges of a graph of one
        table
    """

    kinds: Kinds = field(default_factory=Kinds.one)
    ends: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    weighted: frozenset[str | None] = frozenset()


def relation_name(triple: Triple) -> str:
    """ "user-bought-item" for ("user", "bought", "item"); "edges" in a graph of one table."""
    return "-".join(triple) if triple[0] != ONE else triple[1]


def reverse_triple(triple: Triple) -> Triple:
    source, name, target = triple
    return target, REVERSE + name, source


def with_reverses(relations: Iterable[Relation]) -> dict[str, Relation]:
    """Relations by name, each followed by its reverse.

    relations: as they were given; undirected and one-way ones have no reverse
    """
    every: dict[str, Relation] = {}
    for relation in relations:
        pair = [relation, relation.reversed()] if relation.has_reverse else [relation]
        for part in pair:
            if part.name in every:
                raise InputError(
                    f"two relations are called {part.name!r}; every relation gets a reverse "
                    f"called {REVERSE}...: give another name to one of them"
                )
            every[part.name] = part
    return every


def reverses_of(relations: Iterable[Relation]) -> str:
    """In words for people, which of the relations that were given have a reverse."""
    every = list(relations)
    one_way = sum(part.one_way for part in every)
    if one_way == len(every):
        return "one-way, without reverses"
    return (
        f"{one_way:,} one-way, each other with its reverse" if one_way else "each with its reverse"
    )


def shifted(kinds: Kinds, triple: Triple, edges: Tensor) -> Tensor:
    """Edges (2, edges) numbered within their kinds, in the numbering of all nodes."""
    starts = [kinds.range(kind).start for kind in (triple[0], triple[2])]
    return edges + torch.tensor(starts, device=edges.device)[:, None]


def union(relations: Mapping[str, Relation], num_nodes: int) -> CSR:
    """The adjacency of all relations together: edges at the same place are one, of the sum of
    their weights; where no relation has weights, of weight 1."""
    matrices = [relation.adjacency for relation in relations.values()]
    if len(matrices) == 1:
        return matrices[0]
    weighted = any(A.values is not None for A in matrices)
    if not matrices:
        return CSR.empty(num_nodes, num_nodes)
    key = torch.cat([A.row_of_entry * num_nodes + A.indices for A in matrices])
    if weighted:
        key, group = torch.unique(key, return_inverse=True)
        given = torch.cat([A.weights(torch.float64) for A in matrices])
        values = torch.zeros(len(key), dtype=torch.float64).index_add_(0, group, given).float()
    else:
        key, values = torch.unique(key), None
    rows = torch.div(key, num_nodes, rounding_mode="floor")
    counts = torch.bincount(rows, minlength=num_nodes)
    return CSR(offsets(counts), key - rows * num_nodes, values, num_nodes)
