"""Splits of a relation's edges into training, validation and test pairs, without leaks.

A graph that `split_pairs` returns has `pairs`, and its edges are those that messages may use:
validation and test pairs are in it in neither direction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from vrgcn.files.setting_names import setting
from vrgcn.graph.graph import Graph
from vrgcn.graph.pairs import EDGES, Pairs
from vrgcn.graph.propagation import is_symmetric
from vrgcn.graph.sparse import CSR, offsets
from vrgcn.pairs.negatives import drawn_negatives

RATIO = (0.85, 0.05, 0.1)  # as in the experiments with GAE
RULES = (
    "validation and test pairs and their reverses carry no messages",
    "negatives contain no pair of any split",
)


def split_pairs(
    graph: Graph, relation: str = EDGES, ratio: Sequence[float] = RATIO, seed: int = 0
) -> Graph:
    """The graph whose edges are to be predicted: messages use its training pairs alone.

    relation: "edges", the one relation of a graph without kinds
    ratio: shares of training, validation and test pairs, drawn at random; both directions of an
        edge are in one of them
    seed: of the split and of the negatives that scores compare with

    It has no labels, and all nodes are training nodes: features of all nodes are known.
    """
    _check(graph, relation)
    generator = torch.Generator().manual_seed(seed)
    A = graph.adjacency
    targets, sources = A.row_of_entry, A.indices
    directed = not is_symmetric(A)
    one, other = torch.minimum(sources, targets), torch.maximum(sources, targets)
    key, place = torch.unique(one * graph.num_nodes + other, return_inverse=True)
    loop = torch.div(key, graph.num_nodes, rounding_mode="floor") == key % graph.num_nodes
    drawn = torch.zeros(len(key), dtype=torch.int64)  # 0 train, 1 val, 2 test; loops stay
    drawn[~loop] = _drawn(int((~loop).sum()), ratio, generator)
    of_entry = drawn[place]
    counted = sources != targets
    if not directed:
        counted &= sources < targets
    ends = torch.stack([sources, targets], dim=1)
    train, val, test = (ends[counted & (of_entry == number)] for number in range(3))
    everything = range(graph.num_nodes)
    pairs = Pairs(relation, directed, everything, everything, train, val, test, rules=RULES)
    negatives = {
        name: drawn_negatives(pairs, len(pairs.split(name)), generator)
        for name in ("val", "test")
        if len(pairs.split(name))
    }
    return message_graph(graph, replace(pairs, negatives=negatives), _kept(A, of_entry == 0))


def message_graph(graph: Graph, pairs: Pairs, adjacency: CSR) -> Graph:
    """The same nodes with the edges that messages may use, and pairs in place of labels."""
    nodes = torch.arange(graph.num_nodes)
    splits = {"train": nodes, "val": nodes[:0], "test": nodes[:0]}
    names = replace(graph.names, classes=None)
    found = Graph.from_parts(adjacency, graph.features, None, splits, 0, names)
    found.pairs = pairs
    found.scaling = graph.scaling
    return found


def _check(graph: Graph, relation: str) -> None:
    if graph.kinds is not None:
        raise ValueError(
            f"{setting('predict', relation)}: pairs of a graph with several kinds cannot be "
            "predicted yet"
        )
    if relation != EDGES:
        raise ValueError(
            f"{setting('predict', relation)}: a graph of one kind has one relation, "
            f"{setting('predict', EDGES)}"
        )
    if not graph.num_edges:
        raise ValueError(f"{setting('predict', relation)}: the graph has no edges")


def _drawn(count: int, ratio: Sequence[float], generator: torch.Generator) -> Tensor:
    """(count,) of 0, 1 and 2 in the shares of the ratio, in random order."""
    val, test = int(ratio[1] * count), int(ratio[2] * count)
    train = int(ratio[0] * count) if sum(ratio) < 1 - 1e-9 else count - val - test
    if train < 1:
        raise ValueError(
            f"{setting('ratio', tuple(ratio))} leaves none of {count} edges to train on"
        )
    found = torch.full((count,), 3)  # in no split, and in no message
    order = torch.randperm(count, generator=generator)
    for number, part in enumerate(order[: train + val + test].split([train, val, test])):
        found[part] = number
    return found


def _kept(A: CSR, keep: Tensor) -> CSR:
    """Part of the entries of A. keep: (entries,) bool"""
    counts = torch.bincount(A.row_of_entry[keep], minlength=A.num_rows)
    values = None if A.values is None else A.values[keep]
    return CSR(offsets(counts), A.indices[keep], values, A.columns)
