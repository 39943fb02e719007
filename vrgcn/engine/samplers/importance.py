"""FastGCN's importance sampling with the paper's global q, unbiased.

The same `size` nodes for all targets of a minibatch, drawn from q(v) ~ sum_u P[u, v]^2 with
replacement; their entries are P[u, v] * count(v) / (size * q(v)) and R = 1. The paper's IS draws
own edges like any others, so here own = 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from vrgcn.engine.samplers import Sample
from vrgcn.graph.propagation import Propagation, chunks
from vrgcn.graph.sparse import CSR, offsets


class Distribution(NamedTuple):
    """probability: (nodes,) q; cumulative: (nodes,) its running sum"""

    probability: Tensor
    cumulative: Tensor


class Importance:
    """size: nodes to draw per hop"""

    random = True
    shared = True
    draws_own = True
    size_setting = "sample size"

    def __init__(self, size: int) -> None:
        self.size = size
        self._known: WeakKeyDictionary[Propagation, Distribution] = WeakKeyDictionary()

    @classmethod
    def build(cls, fanouts: Sequence[int], sample_size: int) -> Importance:
        return cls(sample_size)

    def computes_neighbours(self, level: int) -> bool:
        return True

    def sample(
        self, P: Propagation, targets: Tensor, level: int, generator: torch.Generator
    ) -> Sample:
        q = self.distribution(P)
        uniforms = torch.rand(self.size, dtype=torch.float64, generator=generator)
        drawn = torch.searchsorted(q.cumulative, uniforms * q.cumulative[-1], right=True)
        nodes, counts = torch.unique(drawn, return_counts=True)
        weight = counts / (self.size * q.probability[nodes])

        # Rows of P with the own edge among the others, then only the columns that were drawn.
        rows, columns, values = _entries(P, targets)
        place = torch.searchsorted(nodes, columns).clamp_(max=len(nodes) - 1)
        kept = (nodes[place] == columns) & (values != 0)
        rows, columns, place, values = rows[kept], columns[kept], place[kept], values[kept]
        order = torch.argsort(rows, stable=True)
        edges = CSR(
            offsets(torch.bincount(rows, minlength=len(targets))),
            columns[order],
            (values.double() * weight[place])[order].to(P.dtype),
            P.num_nodes,
        )
        return Sample(0.0, edges, torch.ones(len(targets), dtype=P.dtype))

    def distribution(self, P: Propagation) -> Distribution:
        """q of a matrix, computed once."""
        if P not in self._known:
            self._known[P] = _distribution(P)
        return self._known[P]


def _distribution(P: Propagation) -> Distribution:
    squares = torch.zeros(P.num_nodes, dtype=torch.float64)
    for chunk in chunks(torch.arange(P.num_nodes), P):
        _, columns, values = _entries(P, chunk)
        squares.index_add_(0, columns, values.double().square())
    total = squares.sum()
    # A matrix of zeros has nothing to prefer; its average is zero whatever is drawn.
    q = squares / total if total > 0 else torch.full_like(squares, 1 / len(squares))
    return Distribution(q, q.cumsum(0))


def _entries(P: Propagation, nodes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(entries,) places among the nodes, columns and values of rows of P, own edges included."""
    others = P.rows(nodes)
    own = P.own_rows(nodes)
    if not isinstance(own, Tensor):
        own = torch.full((len(nodes),), own, dtype=P.dtype)
    rows = torch.cat([torch.arange(len(nodes)), others.row_of_entry])
    return rows, torch.cat([nodes, others.indices]), torch.cat([own, others.weights(P.dtype)])
