r"""The moving frame of tables: the move that all rows of a table make together, kept once.

While the weights move, the rows of a table drift together. Errors of single rows average out in the
gradient of the weights; the common one adds up. So a table may keep T and a vector D, and row v is

    T_v + f_v D

Every row has then the common move since its own last write. Before a minibatch B writes its rows x,
and before any row is averaged, D moves by the mean of x_v - T_v - f_v D, divided by f_v, over the K
rows of B with f > 0. So

    D  =  mean over K of (x_v - T_v) / f_v,        T_B = x_B - f_B D

One row has nothing in common with others: D moves if K has two rows or more. A row that was never
written has T = 0, and is read as the frame itself. An average is (P T)_u + (P f)_u D.

f is 1 for activations. Tables of gradients hold left · g, so f is `left`, and 0 for nodes whose
neighbours are computed anew: their rows stay raw, because corrections cancel what was read of them
exactly, for any table (way_back.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from vrgcn.graph.propagation import Propagation, chunks, neighbours
from vrgcn.graph.sparse import CSR

if TYPE_CHECKING:
    from vrgcn.engine.plan import Relation
    from vrgcn.engine.samplers import Sampler
    from vrgcn.graph.kinds import Kinds


class Frame:
    """The frame of one table.

    move: (kinds, width) D of each kind of nodes, never changed in place
    share: (rows,) f; None: 1 for all
    kinds: (rows,) the kind of each; None: there is one
    """

    def __init__(self, move: Tensor, share: Tensor | None = None, kinds: Tensor | None = None):
        self.move = move
        self.share = share
        self.kinds = kinds
        self._inverse: Tensor | None = None  # 1 / f, or 0 where f = 0
        if share is not None:
            self._inverse = torch.where(share == 0, 0, 1 / share).to(move)

    def added(self, rows: Tensor, places: Tensor, sign: int = 1) -> Tensor:
        """T + f D, or with sign -1 x - f D: (rows, width) at `places` of the table."""
        move = self.move.to(rows.device, rows.dtype)
        if self.kinds is not None:
            move = move.index_select(0, self.kinds.index_select(0, places).to(rows.device))
        if self.share is None:
            return torch.add(rows, move, alpha=sign)
        share = self.share.index_select(0, places).to(rows.device, rows.dtype)
        return torch.addcmul(rows, share[:, None], move, value=sign)

    def averaged(self, average: Tensor, weights: Tensor) -> Tensor:
        """P T + (P f) D: (targets, width), in place; weights: (targets, kinds), P f."""
        weights, move = (x.to(average.device, average.dtype) for x in (weights, self.move))
        return average.addmm_(weights, move)

    def weights(self, rows: CSR) -> Tensor:
        """(targets, kinds): P f for any rows of P."""
        share = self.share
        if share is None:
            share = self.move.new_ones(rows.columns)
        return rows.to(share.device) @ by_kind(share, self.kinds, len(self.move))

    def sums(self, x: Tensor, held: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
        """The sums (kinds, width) of (x - T) / f over rows x, and how many these are (kinds, 1).

        x: (rows, width); held: T, what the table holds at these `places`
        """
        x, held = x.to(self.move), held.to(self.move)
        if self._inverse is None and self.kinds is None:
            count = self.move.new_full((1, 1), len(x))
            return x.sum(0, True).sub_(held.sum(0, True)), count
        weights = x.new_ones(len(x))
        if self._inverse is not None:
            weights = self._inverse.index_select(0, places)
        kinds = None if self.kinds is None else self.kinds.index_select(0, places)
        by = by_kind(weights, kinds, len(self.move)).t()
        count = by.count_nonzero(1).to(self.move)[:, None]
        return (by @ x).sub_(by @ held), count

    def advance(self, total: Tensor, count: Tensor) -> None:
        """Move D to the mean of the rows of a minibatch. total, count: of `sums`"""
        self.move = torch.where(count > 1, total / count.clamp(min=1), self.move)


def by_kind(x: Tensor, kinds: Tensor | None, count: int) -> Tensor:
    """(rows, count): x (rows,) in the column of each row's kind, and 0 in the others."""
    if kinds is None:
        return x[:, None]
    return x.new_zeros(len(x), count).scatter_(1, kinds[:, None], x[:, None])


class Frames:
    """f of the tables of a run, and P f: each computed once, when it is first asked for.

    matrices, sampler: see planner.Planner
    kinds: of the nodes
    corrected: whether sampled neighbours are given what the history of gradients lacks
    """

    def __init__(
        self,
        matrices: Sequence[Mapping[Relation, Propagation]],
        sampler: Sampler,
        kinds: Kinds,
        *,
        corrected: bool,
        device: torch.device,
    ) -> None:
        self.matrices = matrices
        self.sampler = sampler
        self.corrected = corrected
        self.device = device
        self._kinds: Tensor | None = None
        if len(kinds.names) > 1:
            self._kinds = kinds.of(torch.arange(kinds.num_nodes))
        self._count = len(kinds.names)
        self._shares: dict[tuple[int, Relation], Tensor] = {}
        self._averages: dict[tuple[Relation, int | None], Tensor] = {}

    def share(self, level: int, number: int) -> Tensor:
        """(span,): f of the gradients of a level's relation, by its number."""
        over = list(self.matrices[level])[number]
        if (level, over) not in self._shares:
            share = self._share(level, self.matrices[level][over])
            known = (other for other in self._shares.values() if torch.equal(other, share))
            self._shares[level, over] = next(known, share)
        return self._shares[level, over]

    def frame(self, width: int, level: int, number: int | None, dtype: torch.dtype) -> Frame | None:
        """A frame that did not move yet, of a level's activations (number None) or gradients of a
        relation; None if all rows stay raw."""
        share = None if number is None else self.share(level, number)
        if share is not None and not share.any():
            return None
        kinds = self._kinds
        if number is not None and list(self.matrices[level].values())[number].spans is not None:
            kinds = None  # rows of a relation are of one kind
        move = torch.zeros(
            1 if kinds is None else self._count, width, dtype=dtype, device=self.device
        )
        return Frame(move, share, None if kinds is None else kinds.to(self.device))

    def forward(self, level: int, over: Relation) -> Tensor:
        """(nodes, kinds): P f for activations, own edges aside."""
        if (over, None) not in self._averages:
            P = self.matrices[level][over]
            ones = torch.ones(P.num_nodes, dtype=P.dtype)
            self._averages[over, None] = self._average(P, by_kind(ones, self._kinds, self._count))
        return self._averages[over, None]

    def backward(self, level: int, over: Relation) -> Tensor:
        """(nodes, kinds): Pᵀ f for gradients, own edges aside; the factor `left` is in f. In one
        column for a relation, whose rows are of one kind."""
        share = self.share(level, list(self.matrices[level]).index(over))
        if (over, id(share)) not in self._averages:
            P = self.matrices[level][over]
            if P.spans is None:
                f = by_kind(share.cpu(), self._kinds, self._count)
            else:
                f = torch.zeros(P.num_nodes, 1, dtype=share.dtype)
                f[P.spans[0].start : P.spans[0].stop, 0] = share.cpu()
            transposed = replace(P.transposed, right=None)
            self._averages[over, id(share)] = self._average(transposed, f)
        return self._averages[over, id(share)]

    def _share(self, level: int, P: Propagation) -> Tensor:
        span = range(P.num_nodes) if P.spans is None else P.spans[0]
        nodes = torch.arange(span.start, span.stop)
        share = torch.ones(len(nodes), dtype=P.dtype)
        if P.left is not None:
            share = P.left.index_select(0, nodes)
        return share.masked_fill(self._computed(level, P, nodes), 0).to(self.device)

    def _computed(self, level: int, P: Propagation, nodes: Tensor) -> Tensor:
        """(nodes,) bool: whether neighbours of a visited node may be computed anew."""
        if not (self.corrected and self.sampler.computes_neighbours(level)):
            return torch.zeros(len(nodes), dtype=torch.bool)
        chosen = getattr(self.sampler, "computes_of", None)
        if chosen is None:
            return torch.ones(len(nodes), dtype=torch.bool)
        matrices = self.matrices[level].values()
        counted = matrices if any(A.spans for A in matrices) else [P]
        found: Tensor = chosen(level, neighbours(counted, nodes))
        return found

    def _average(self, P: Propagation, x: Tensor) -> Tensor:
        """P x for x (nodes, columns), own edges aside, in pieces."""
        nodes = torch.arange(P.num_nodes)
        return torch.cat([P.rows(some) @ x for some in chunks(nodes, P)]).to(self.device)
