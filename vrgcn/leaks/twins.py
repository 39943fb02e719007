"""Twins: the same record twice, once among training nodes and once among test nodes."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from vrgcn.graph.block import Block
from vrgcn.graph.blocks import Blocks
from vrgcn.graph.graph import Graph
from vrgcn.graph.sparse import num_entries
from vrgcn.leaks.finding import Budget, Finding

SHARE, HIGH = 0.01, 0.1  # of test nodes that have a twin: worth a word, and severe
_TELLING = 0.5  # share of nodes whose features no other node has, from which on features tell them
_NEIGHBOURS = 2  # of a node, at least: nodes without any are alike by nature
_CHUNK = 1 << 22  # cells at a time


def twins_across_splits(graph: Graph, budget: Budget) -> Iterator[Finding]:
    """Find validation and test nodes with the features and the neighbours of a training node."""
    if graph.labels is None or not len(graph.train):
        return
    held = torch.cat([graph.val, graph.test])
    if not len(held) or num_entries(graph.features) + graph.num_edges > budget.entries:
        return
    features = row_keys(graph.features)
    nodes = torch.cat([graph.train, held])
    _, counts = features[nodes].unique(return_counts=True)
    if float((counts == 1).sum()) / len(nodes) < _TELLING:
        return
    both = features * 3 + neighbour_keys(graph)
    linked = graph.adjacency.counts
    twin = torch.isin(both[held], both[graph.train]) & (linked[held] >= _NEIGHBOURS)
    share = float(twin.double().mean())
    if share < SHARE:
        return
    same = _same_label(graph, both, held[twin])
    if same < (1 + _by_chance(graph)) / 2:  # nodes that look alike, and are different records
        return
    yield Finding(
        "high" if share >= HIGH else "medium",
        "twins",
        f"{int(twin.sum()):,} of {len(held):,} validation and test nodes have exactly the features "
        f"and the neighbours of a training node, and {same:.0%} of them its label",
        "remove records that are in the table twice, or put both into one split",
    )


def _same_label(graph: Graph, keys: Tensor, twins: Tensor) -> float:
    """Share of the twins with the label of one of their training nodes."""
    assert graph.labels is not None
    order = keys[graph.train].argsort()
    known = graph.train[order]
    place = torch.searchsorted(keys[known], keys[twins])
    same = graph.labels[known[place]] == graph.labels[twins]
    return float((same if same.dim() == 1 else same.all(1)).double().mean())


def _by_chance(graph: Graph) -> float:
    """The share of pairs of training nodes with the same label."""
    assert graph.labels is not None
    labels = graph.labels[graph.train]
    counts = labels.unique(dim=0, return_counts=True)[1].double()
    return float((counts / counts.sum()).square().sum())


def _weights(count: int, seed: int) -> Tensor:
    """(count,) random odd numbers; sums of products with them wrap around and are exact."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(-(1 << 62), 1 << 62, (count,), generator=generator) * 2 + 1


def row_keys(features: Tensor) -> Tensor:
    """(rows,) a number for each row: equal rows have equal ones, others hardly ever."""
    weights = _weights(features.shape[1], seed=2)
    keys = torch.zeros(features.shape[0], dtype=torch.int64)
    for block in Blocks.of(features).blocks:
        own = _sparse_keys(block, weights) if block.sparse else _dense_keys(block, weights)
        if block.places is None:
            keys[block.row : block.row + block.num_rows] += own
        else:
            keys[block.places] += own
    return keys


def _dense_keys(block: Block, weights: Tensor) -> Tensor:
    own = weights[block.columns]
    size = max(_CHUNK // max(block.width, 1), 1)
    parts = [
        (_bits(block.values[start : start + size]) * own).sum(1)
        for start in range(0, block.num_rows, size)
    ]
    return torch.cat(parts) if parts else torch.zeros(0, dtype=torch.int64)


def _sparse_keys(block: Block, weights: Tensor) -> Tensor:
    matrix = block.matrix
    bits = _bits(matrix.weights(torch.float32)) * weights[block.columns][matrix.indices.long()]
    keys = torch.zeros(block.num_rows, dtype=torch.int64)
    return keys.index_add_(0, matrix.row_of_entry.long(), bits)


def _bits(values: Tensor) -> Tensor:
    """The bits of numbers as integers; 0 and -0 have the same."""
    return (values.float() + 0.0).contiguous().view(torch.int32).long()


def neighbour_keys(graph: Graph) -> Tensor:
    """(nodes,) a number for each node's set of neighbours."""
    keys = torch.zeros(graph.num_nodes, dtype=torch.int64)
    for number, relation in enumerate(graph.relations.values()):
        A, weights = relation.adjacency, _weights(graph.num_nodes, seed=3 + number)
        keys.index_add_(0, A.row_of_entry.long(), weights[A.indices.long()])
    return keys
