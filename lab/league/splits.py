"""Splits of a graph that has one of its own: drawn so that they are of the same kind.

The mean and the standard error over splits say something only if every split poses the same
problem: a public split of 140 training nodes is not averaged with one of 60% of the nodes.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
import torch
from scipy.sparse.csgraph import connected_components

from vrgcn.graph.graph import Graph

_LARGE = 50  # nodes: smaller components keep their place


def deal_again(graph: Graph, seed: int) -> Graph:
    """Deal the nodes of the graph's own split anew: as many training nodes of each class as before,
    as many validation and test nodes.

    seed: 0 keeps the graph's own split
    """
    if not seed:
        return graph
    assert graph.labels is not None
    own = torch.cat([graph.train, graph.val, graph.test])
    draw = torch.Generator().manual_seed(seed)
    pool = own[torch.randperm(len(own), generator=draw)]
    labels, wanted = graph.labels[pool], graph.labels[graph.train]
    taken = torch.zeros(len(pool), dtype=torch.bool)
    for label, count in zip(*wanted.unique(return_counts=True), strict=True):
        taken[(labels == label).nonzero()[: int(count), 0]] = True
    rest = pool[~taken]
    parts = {
        "train": pool[taken],
        "val": rest[: len(graph.val)],
        "test": rest[len(graph.val) :],
    }
    return graph.with_splits({name: nodes.sort()[0] for name, nodes in parts.items()})


def rotate_parts(graph: Graph, turns: int) -> Graph:
    """Let the connected parts of a graph, such as tissues, take each other's roles: each gets that
    of the part `turns` places before it. Parts of a few nodes keep theirs.

    turns: 0 keeps the graph's own split
    """
    roles = np.full(graph.num_nodes, "", dtype=object)
    for name in ("train", "val", "test"):
        roles[graph.split(name).numpy()] = name
    A = graph.adjacency
    ones = np.ones(len(A.indices), dtype=np.int8)
    shape = (graph.num_nodes, graph.num_nodes)
    matrix = sp.csr_matrix((ones, A.indices.numpy(), A.indptr.numpy()), shape=shape)
    _, part_of = connected_components(matrix, directed=False)
    large = np.flatnonzero(np.bincount(part_of) >= _LARGE)
    first = [roles[np.argmax(part_of == part)] for part in large]
    dealt = roles.copy()
    for place, part in enumerate(large):
        dealt[part_of == part] = first[(place - turns) % len(large)]
    chosen = {
        name: torch.from_numpy(np.flatnonzero(dealt == name)) for name in ("train", "val", "test")
    }
    return graph.with_splits(chosen)
