"""Figures about a graph: the columns of the paper's Table 1, and more.

Table 1 counts a node among its own neighbours. With Ã the pattern of A + I,

    E = nnz(Ã)              an undirected edge counts twice, a self-loop once, every node has one
    Degree = E / V          the average number of nodes within one hop
    Degree 2 = nnz(Ã²) / V  the average number of nodes within two hops

A directed graph is followed against its edges: the nodes whose features reach u. The published
averages were rounded twice, to one decimal and then to an integer: PubMed's 5.496 is printed as 6.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from vrgcn.graph.graph import Graph
from vrgcn.graph.sparse import CSR, in_blocks, is_dense, is_sparse, sparse_columns, stored
from vrgcn.graph.validation import SPLITS
from vrgcn.tasks import find_task
from vrgcn.tasks.spread import Spread

# Two-hop neighbourhoods are counted on all nodes up to so many steps, which takes a few seconds,
# and on a random sample of nodes beyond.
STEPS = 200_000_000
_CHUNK_STEPS = 16_000_000  # at a time: some 200 MB
_LEAST_SAMPLE = 100
HIDDEN = 128  # the width that memory is estimated for


@dataclass(frozen=True)
class SampledMean:
    """value: a mean over `nodes` nodes; error: its standard error, 0 if those are all nodes"""

    value: float
    nodes: int
    error: float = 0.0

    def rounded(self) -> int:
        """As in Table 1: to one decimal, then to an integer, halves up."""
        return int(np.floor(round(self.value, 1) + 0.5))


@dataclass(frozen=True)
class Statistics:
    """The numbers that `vrgcn info` prints.

    edges: nnz(A + I), Table 1's E
    degree, two_hop: Table 1's averages
    median_degree, max_degree: neighbours of a node without itself
    self_loops, isolated: nodes with an edge to themselves; nodes with no other edge
    homophily: the share of edges, self-loops aside, that join nodes of the same class, among those
        whose ends both have a known one; None if nodes have several classes, or numbers, or
        none is known
    numbers: of labels that are numbers; None if they are classes, or none is known
    memory: bytes of what training holds, by name
    sparse: feature columns that are stored sparse beside dense ones
    """

    nodes: int
    edges: int
    degree: SampledMean
    two_hop: SampledMean
    median_degree: int
    max_degree: int
    self_loops: int
    isolated: int
    directed: bool
    weighted: bool
    features: int
    density: float
    classes: int
    several: bool
    labelled: int
    splits: dict[str, int]
    homophily: float | None
    numbers: Spread | None
    memory: dict[str, int]
    sparse: int = 0

    @property
    def entries(self) -> int:
        """Entries of the adjacency matrix: an undirected edge has two, a self-loop one."""
        return self.edges - self.nodes + self.self_loops

    @property
    def pairs(self) -> int:
        """Pairs of connected nodes, as `vrgcn import` counts edges."""
        return self.entries if self.directed else (self.entries + self.self_loops) // 2


def statistics(graph: Graph, seed: int = 0) -> Statistics:
    """All figures; `seed` draws the sample of nodes for the two-hop average of a large graph."""
    A, V = graph.adjacency, graph.num_nodes
    loop = A.row_of_entry == A.indices
    loops = int(loop.sum())
    others = A.counts - torch.bincount(A.indices[loop], minlength=V)
    out = torch.bincount(A.indices[~loop], minlength=V)
    edges = A.num_entries + V - loops
    return Statistics(
        nodes=V,
        edges=edges,
        degree=SampledMean(edges / V, V),
        two_hop=two_hop(A, torch.Generator().manual_seed(seed), STEPS),
        median_degree=int(others.median()),
        max_degree=int(others.max()),
        self_loops=loops,
        isolated=int(((others == 0) & (out == 0)).sum()),
        directed=not _symmetric(A),
        weighted=graph.weighted,
        features=graph.num_features,
        density=_density(graph.features),
        classes=graph.num_classes,
        several=find_task(graph.task).several,
        labelled=int(graph.labelled.sum()),
        splits={name: len(graph.split(name)) for name in SPLITS},
        homophily=_homophily(graph),
        numbers=_numbers(graph),
        memory=_memory(graph),
        sparse=_sparse_width(graph.features),
    )


def two_hop(A: CSR, generator: torch.Generator, steps: int) -> SampledMean:
    """The average number of nodes within two hops of a node, itself among them.

    steps: how many paths of two edges may be followed in all; where the graph has more, nodes are
        drawn without replacement, as many as the average node allows, but at least 100.
    """
    V = A.num_rows
    # Paths of two edges from each node, with the steps of staying in place: the work of counting.
    degree = A.counts + 1
    paths = degree + torch.zeros(V, dtype=torch.int64).index_add_(
        0, A.row_of_entry, degree[A.indices]
    )
    count = min(V, max(_LEAST_SAMPLE, int(steps * V / int(paths.sum()))))
    if count == V:
        nodes = torch.arange(V)
    else:
        nodes = torch.randperm(V, generator=generator)[:count].sort().values
    sizes = torch.cat([_reached(A, chunk) for chunk in _chunks(nodes, paths)]).double()
    if count == V:
        return SampledMean(float(sizes.mean()), V)
    error = sizes.std() * ((1 - count / V) / count) ** 0.5
    return SampledMean(float(sizes.mean()), count, float(error))


def _chunks(nodes: Tensor, paths: Tensor) -> tuple[Tensor, ...]:
    """Nodes in parts of about equal work."""
    part = torch.div(paths[nodes].cumsum(0), _CHUNK_STEPS, rounding_mode="floor")
    sizes: list[int] = torch.unique_consecutive(part, return_counts=True)[1].tolist()
    return nodes.split(sizes)


def _reached(A: CSR, nodes: Tensor) -> Tensor:
    """(len(nodes),) how many nodes are within two hops of each: entries in the rows of Ã²."""
    indptr, near = _with_own(A, nodes)
    # Only the rows of Ã that are met, so that a graph larger than memory is never copied.
    met, place = torch.unique(near, return_inverse=True)
    first = _pattern(indptr, place, len(met))
    return torch.from_numpy(np.diff((first @ _pattern(*_with_own(A, met), A.columns)).indptr))


def _with_own(A: CSR, nodes: Tensor) -> tuple[Tensor, Tensor]:
    """Rows of A + I: where each starts, and its columns, the own last, even if it was there."""
    indptr, entries = A.entries(nodes)
    own = indptr[1:] + torch.arange(len(nodes))
    columns = torch.empty(len(entries) + len(nodes), dtype=torch.int64)
    other = torch.ones(len(columns), dtype=torch.bool)
    other[own] = False
    columns[own] = nodes
    columns[other] = A.indices[entries]
    return indptr + torch.arange(len(indptr)), columns


def _pattern(indptr: Tensor, indices: Tensor, columns: int) -> Any:
    """Boolean: in a product, numbers could overflow to a zero, which is dropped."""
    entries = np.ones(len(indices), dtype=bool)
    shape = (len(indptr) - 1, columns)
    return sp.csr_array((entries, indices.numpy(), indptr.numpy()), shape=shape)


def _symmetric(A: CSR) -> bool:
    T = A.transpose()
    if not torch.equal(A.indptr, T.indptr) or not torch.equal(A.indices, T.indices):
        return False
    return A.values is None or torch.allclose(A.weights(), T.weights())


def _sparse_width(features: Tensor) -> int:
    sparse = sparse_columns(features) if in_blocks(features) else None
    return 0 if sparse is None else sparse.columns


def _density(features: Tensor) -> float:
    if not features.numel():
        return 0.0
    if in_blocks(features):
        filled = (_density(b.values) * b.values.numel() for b in features.blocks)
        return sum(filled) / features.numel()
    if is_sparse(features):
        return CSR.from_torch(features).num_entries / features.numel()
    return sum(int(x.count_nonzero()) for x in features.split(65_536)) / features.numel()


def _numbers(graph: Graph) -> Spread | None:
    if graph.labels is None or find_task(graph.task).has_classes or not graph.labelled.any():
        return None
    return Spread.of(graph.labels[graph.labelled].numpy())


def _homophily(graph: Graph) -> float | None:
    task = find_task(graph.task)
    if graph.labels is None or not task.has_classes or task.several:
        return None
    A, known = graph.adjacency, graph.labelled
    rows = A.row_of_entry
    counted = known[rows] & known[A.indices] & (rows != A.indices)
    if not counted.any():
        return None
    same = graph.labels[rows[counted]] == graph.labels[A.indices[counted]]
    return float(same.double().mean())


def _memory(graph: Graph) -> dict[str, int]:
    """Bytes of the large things that training keeps; a minibatch comes on top."""
    A, x = graph.adjacency, graph.features
    features = sum(map(_bytes, stored(x)))
    memory = {
        "edges": _bytes(A.indptr) + _bytes(A.indices) + _bytes(A.values),
        # The factors of gcn's rows and columns and of own edges; the edges are shared.
        "propagation matrix": 3 * 4 * graph.num_nodes,
        "features": features,
    }
    if is_dense(x):  # how many entries the average of sparse rows has is not known before
        memory["averaged features"] = features
    # Four bytes a value and eight for the step of the last write.
    memory[f"history, each hidden layer of {HIDDEN}"] = graph.num_nodes * (4 * HIDDEN + 8)
    return memory


def _bytes(x: Tensor | None) -> int:
    return 0 if x is None else x.numel() * x.element_size()
