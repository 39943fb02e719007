"""Features that the import made of edges' columns, made again of the edges that messages may use.

The import writes the mean over a node's edges, of all splits and times, such as `item.rated.rating`
and `user.rev_rated.rating` (`vrgcn/data/tables/edge_means.py`). Where a relation loses edges, a
mean of numbers that the graph keeps for each edge is computed anew; any other is set to zero.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

import torch
from torch import Tensor

from vrgcn.graph.blocks import Blocks, scale_columns
from vrgcn.graph.edge_means import NONE, made_of_edges
from vrgcn.graph.graph import Graph
from vrgcn.graph.kept import Column
from vrgcn.graph.relations import REVERSE
from vrgcn.graph.sparse import is_dense


def without_columns(graph: Graph, relations: Iterable[str]) -> Tensor:
    """The features, zero where they are means over the edges of some relations.

    relations: their names, such as user-bought-item
    """
    known = [place for relation in relations for place in made_of_edges(graph, relation)]
    if not known:
        return graph.features
    keep = torch.ones(graph.num_features, dtype=graph.features.dtype)
    keep[torch.tensor(known)] = 0
    return scale_columns(graph.features, keep)


def features_of_visible(
    graph: Graph, visible: Mapping[str, Tensor], hidden: Collection[str] = ()
) -> Tensor:
    """The features; means over relations that lose edges use only the visible ones.

    visible: (entries,) bool by relation
    hidden: columns whose means must not be known at all, such as the one that is predicted
    """
    zero: list[int] = []
    means: dict[int, Tensor] = {}
    names = graph.names.features or []
    twice = {name for name, count in Counter(names).items() if count > 1}
    for relation, keep in visible.items():
        A = graph.relations[relation].adjacency
        for place, name in made_of_edges(graph, relation).items():
            owner, _, column = name.partition(".")
            kept = graph.kept.get(relation, {}).get(column)
            ends = A.indices if owner.startswith(REVERSE) else A.row_of_entry
            if names[place] in twice or column in hidden:
                zero.append(place)
            elif column == NONE:
                edges = torch.bincount(ends[keep], minlength=graph.num_nodes)
                means[place] = (edges == 0).double()
            elif kept is not None and kept.kind == "number":
                means[place] = _mean(kept, ends, keep, graph.num_nodes)
            else:
                zero.append(place)
    if not zero and not means:
        return graph.features
    scale = torch.ones(graph.num_features, dtype=graph.features.dtype)
    scale[torch.tensor([*zero, *means])] = 0
    return _with_columns(scale_columns(graph.features, scale), means)


def _mean(column: Column, ends: Tensor, keep: Tensor, nodes: int) -> Tensor:
    """(nodes,) the mean of numbers over each node's visible edges; nodes without any have the mean
    over all of them.

    ends: (entries,) the node that an edge counts for; keep: (entries,) bool
    """
    keep = keep & column.known
    values, ends = column.values[keep], ends[keep]
    sums = torch.zeros(nodes, dtype=torch.float64).index_add_(0, ends, values)
    counts = torch.bincount(ends, minlength=nodes)
    usual = float(values.mean()) if len(values) else 0.0
    return torch.where(counts > 0, sums / counts.clamp(min=1), usual)


def _with_columns(features: Tensor, columns: Mapping[int, Tensor]) -> Tensor:
    """The features with other columns, (nodes,) by place; nodes outside of a column's block have
    none. Columns in sparse blocks stay as they are."""
    blocks = []
    for block in Blocks.of(features).blocks:
        values = block.values
        own = [place for place in columns if 0 <= place - block.column < block.width]
        if own and is_dense(values) and block.places is None:
            values = values.clone()
            for place in own:
                rows = columns[place][block.row : block.row + block.num_rows]
                values[:, place - block.column] = rows.to(values.dtype)
        blocks.append(replace(block, values=values))
    alone = len(blocks) == 1 and blocks[0].covers(features.shape[0])
    return blocks[0].values if alone else Blocks(tuple(features.shape), blocks)
