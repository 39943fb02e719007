"""An order of the nodes in which neighbours are close to each other.

Tables on disk are read a page at a time, some tens of rows. In a random order each neighbour costs
a page; where a node's neighbours follow it, a page serves many. The graph is divided into parts
that fit in memory (`partition`), and each of them into blocks of about a thousand nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from vrgcn.graph.graph import Graph
from vrgcn.graph.partition import Method, partition
from vrgcn.graph.relations import kept_entries
from vrgcn.graph.sparse import CSR
from vrgcn.graph.validation import SPLITS

BLOCK = 1024  # nodes; their rows of a table are some tens of pages
_PART = 250_000  # nodes of a part, whose edges are copied into memory


def locality_order(
    graph: Graph,
    method: Method = "auto",
    *,
    block: int = BLOCK,
    on_piece: Callable[[str, float], None] | None = None,
) -> Tensor:
    """(nodes,) the node at each place of the new order. The same for the same graph.

    method: of `partition`, for the graph and for its parts
    block: nodes of a block, about
    on_piece: told what is being done, and the share of it that is, 0 to 1
    """
    tell = on_piece or (lambda what, done: None)
    nodes = graph.num_nodes
    outer = partition(graph, -(-nodes // _PART), method, tell=partial(tell, "dividing the graph"))
    order = torch.argsort(outer, stable=True)
    done = 0
    for members in order.split(torch.bincount(outer).tolist()):
        part = _among(graph, members)
        inner = partition(part, max(1, len(members) // block), method)
        order[done : done + len(members)] = members[torch.argsort(inner, stable=True)]
        done += len(members)
        tell("ordering its parts", done / nodes)
    return order


def _among(graph: Graph, members: Tensor) -> Graph:
    """A graph of some nodes, ascending, and the edges among them, without features or labels."""
    rows = graph.adjacency.rows(members)
    place = torch.searchsorted(members, rows.indices).clamp_(max=len(members) - 1)
    kept = members.index_select(0, place) == rows.indices
    bare = CSR(rows.indptr, place, None, len(members))
    adjacency, none = kept_entries(bare, kept), torch.empty(0, dtype=torch.int64)
    return Graph.from_parts(
        adjacency, torch.empty(len(members), 1), None, dict.fromkeys(SPLITS, none), 0
    )
