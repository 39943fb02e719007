"""The past of a graph whose nodes are split by time: what baselines are fitted to.

A baseline reads all rows of a graph at once: averages, singular vectors, counts of columns. So
later nodes and edges are taken out before it is fitted, and its own validation nodes, by which
strengths and lengths are chosen, are drawn from the training nodes. The fitted baseline is then
scored on the real validation nodes with all edges, as every model is.
"""

from __future__ import annotations

import torch

from vrgcn.files.mistakes import InputError
from vrgcn.graph.graph import Graph
from vrgcn.graph.sparse import scale_rows

_HELD = 0.1  # share of the training nodes that baselines are judged by while they are fitted


def past_of(graph: Graph, seed: int) -> Graph:
    """Return the graph as it was by the end of training: later nodes have neither edges nor
    features, and no node outside training is in a split.

    graph: with `visible`
    seed: of the training nodes that become validation nodes
    """
    assert graph.visible is not None
    if len(graph.train) < 2:
        raise InputError("a split by time leaves fewer than two training nodes: take a later date")
    there = graph.visible.nodes.to(graph.dtype)
    order = torch.randperm(len(graph.train), generator=torch.Generator().manual_seed(seed))
    held = max(round(_HELD * len(graph.train)), 1)
    splits = {
        "train": graph.train[order[held:]].sort().values,
        "val": graph.train[order[:held]].sort().values,
    }
    features = scale_rows(there, graph.features)
    past = graph.in_training().replace(features=features, scaling=graph.scaling)
    return past.with_splits(splits)
