r"""The moving frame of tables: the move that all rows of a table make together, kept once.

While the weights move, the rows of a table drift together. Errors of single rows average out in the
gradient of the weights; the common one adds up. So a table may keep T and a vector D, and row v is

    T_v + f_v D

Every row has then the common move since its own last write. Before a minibatch B writes its rows x,
and before any row is averaged, D moves to their mean, over the K rows of B with f > 0:

    D  +=  mean over K of (x_v - T_v - f_v D) / f_v,        T_B = x_B - f_B D

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


class Frame:
    """The frame of one table.

    move: (width,) D, never changed in place
    share: (rows,) f; None: 1 for all
    """

    def __init__(self, move: Tensor, share: Tensor | None = None) -> None:
        self.move = move
        self.share = share
        self._inverse: Tensor | None = None  # 1 / f, or 0 where f = 0
        if share is not None:
            self._inverse = torch.where(share == 0, 0, 1 / share).to(move)

    def added(self, rows: Tensor, places: Tensor, sign: int = 1) -> Tensor:
        """T + f D, or with sign -1 x - f D: (rows, width) at `places` of the table."""
        move = self.move.to(rows.device, rows.dtype)
        if self.share is None:
            return torch.add(rows, move, alpha=sign)
        share = self.share.index_select(0, places).to(rows.device, rows.dtype)
        return torch.addr(rows, share, move, alpha=sign)

    def averaged(self, average: Tensor, weights: Tensor) -> Tensor:
        """P T + (P f) D: (targets, width), in place; weights: (targets,), P f."""
        weights, move = (x.to(average.device, average.dtype) for x in (weights, self.move))
        return average.addcmul_(weights[:, None], move)

    def weights(self, rows: CSR) -> Tensor:
        """(targets,): P f for any rows of P."""
        share = self.share
        if share is None:
            share = self.move.new_ones(rows.columns)
        return (rows.to(share.device) @ share[:, None])[:, 0]

    def lack(self, x: Tensor, held: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
        """The sum (width,) and the number of what D lacks for rows x (rows, width), of which the
        table holds T: (rows, width)."""
        x, held = x.to(self.move), held.to(self.move)
        if self._inverse is None:
            count = self.move.new_full((), len(x))
            return x.sum(0).sub_(held.sum(0)).sub_(self.move * count), count
        weights = self._inverse.index_select(0, places)
        count = weights.count_nonzero().to(self.move)
        return (weights @ x).sub_(weights @ held).sub_(self.move * count), count

    def advance(self, total: Tensor, count: Tensor) -> None:
        """Move D by the mean of what it lacks for `count` rows."""
        self.move = torch.addcmul(self.move, total, (count > 1) / count.clamp(min=1))


class Frames:
    """f of the tables of a run, and P f: each computed once, when it is first asked for.

    matrices, sampler: see planner.Planner
    corrected: whether sampled neighbours are given what the history of gradients lacks
    """

    def __init__(
        self,
        matrices: Sequence[Mapping[Relation, Propagation]],
        sampler: Sampler,
        *,
        corrected: bool,
        device: torch.device,
    ) -> None:
        self.matrices = matrices
        self.sampler = sampler
        self.corrected = corrected
        self.device = device
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

    def forward(self, level: int, over: Relation) -> Tensor:
        """(nodes,): P f for activations, own edges aside."""
        if (over, None) not in self._averages:
            P = self.matrices[level][over]
            self._averages[over, None] = self._average(P, torch.ones(P.num_nodes, dtype=P.dtype))
        return self._averages[over, None]

    def backward(self, level: int, over: Relation) -> Tensor:
        """(nodes,): Pᵀ f for gradients, own edges aside; the factor `left` is in f."""
        share = self.share(level, list(self.matrices[level]).index(over))
        if (over, id(share)) not in self._averages:
            P = self.matrices[level][over]
            whole = share.cpu()
            if P.spans is not None:
                whole = torch.zeros(P.num_nodes, dtype=share.dtype)
                whole[P.spans[0].start : P.spans[0].stop] = share.cpu()
            transposed = replace(P.transposed, right=None)
            self._averages[over, id(share)] = self._average(transposed, whole)
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
        """P x for a vector x (nodes,), own edges aside, in pieces."""
        nodes = torch.arange(P.num_nodes)
        return torch.cat([(P.rows(some) @ x[:, None])[:, 0] for some in chunks(nodes, P)]).to(
            self.device
        )
