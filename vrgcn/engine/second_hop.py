"""Averages over the neighbours of neighbours, without what returns to a node from itself."""

from __future__ import annotations

import torch
from torch import Tensor

from vrgcn.graph.propagation import Propagation
from vrgcn.graph.sparse import CSR

_ROUNDING = 1e-12  # of a sum in float64, generously


def second_hop(P: Propagation, nodes: Tensor, table: Tensor) -> Tensor:
    """(N N - diag(N N)) T for some nodes, in float64: (len(nodes), width). N is P without its
    diagonal.

    table: T, (all nodes, width)

    What float64 leaves of a node's own row by rounding is below the last bit of a float32, or taken
    for zero where there is nothing else.
    """
    first = P.rows(nodes)
    near, places = _numbered(P.num_nodes, first.indices)
    then, place = P.rows(near), places[first.indices]
    far, columns = _numbered(P.num_nodes, then.indices, nodes)
    rows = table.index_select(0, far.to(table.device)).to(nodes.device, torch.float64)
    averages = then.with_columns(columns[then.indices], len(far)) @ rows
    twice = first.with_columns(place, len(near)) @ averages
    own = rows.index_select(0, columns[nodes])
    others = twice - _returning(first, place, then, nodes)[:, None] * own
    return others.where(others.abs() > _ROUNDING * twice.abs(), 0.0)


def _numbered(count: int, *some: Tensor) -> tuple[Tensor, Tensor]:
    """The nodes that are named, ascending, and (count,) the place of each among them. No sorting:
    there are as many names as entries of P."""
    named = torch.zeros(count, dtype=torch.bool, device=some[0].device)
    for nodes in some:
        named[nodes] = True
    return named.nonzero()[:, 0], named.cumsum(0) - 1


def _returning(first: CSR, place: Tensor, then: CSR, nodes: Tensor) -> Tensor:
    """The diagonal of N N for some nodes, Σ_v N[u, v] N[v, u]: (len(nodes),) float64.

    first: rows of N for the nodes u; then: rows of N for their neighbours v
    place: (entries of first,) the rows of `then` that belong to the entries
    """
    back = torch.zeros(len(nodes), dtype=torch.float64, device=nodes.device)
    if not len(then.indices):
        return back
    entries = then.row_of_entry * then.columns + then.indices  # ascending, as the columns are
    wanted = place * then.columns + nodes[first.row_of_entry]
    at = torch.searchsorted(entries, wanted).clamp(max=len(entries) - 1)
    there = entries[at] == wanted
    weights = then.weights(torch.float64)[at] * first.weights(torch.float64)
    return back.index_add_(0, first.row_of_entry[there], weights[there])
