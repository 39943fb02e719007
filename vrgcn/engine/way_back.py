r"""The way back through a hop by the history of gradients.

g_u is the gradient of the loss with respect to what `propagate` answered for node u, and ḡ_u its
history. B is the minibatch, the first rows of every level. A hop has targets T and sources S. Its
gradient with respect to the activation of a source v, own edges aside, is

    [v in B] (Pᵀ ḡ)_v  +  Σ R P_uv δ_u   over the u in T that sample v, u and v not both in B

with ḡ_B the gradients of this very minibatch, written before they are averaged, and

    δ_u = g_u - (ḡ_u before that)   for u in B,        δ_u = g_u   for u outside B,

where g_u is a correction already. The second term is there if the way is `corrected`. For any ḡ the
mean over minibatches and samples is Pᵀ g: v itself, when it is visited, takes ḡ_u for its
neighbours; and u, when it is visited, adds to v what ḡ_u lacked.

The tables are per node: the loss of a minibatch is a mean over its nodes, and that is undone. They
hold left g, with P = diag(own) + diag(left) A diag(right): see plan.Back.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from vrgcn.engine.history import History, Replaced
from vrgcn.engine.plan import Back, Hop
from vrgcn.graph.sparse import CSR, scale_rows


class WayBack:
    """The way back of one hop in one minibatch.

    nodes: (batch,) B; targets: those of B that the hop has rows for, its first targets
    corrected: whether sampled neighbours are given what the history lacks
    size: over how many nodes the loss is a mean; None: those of B
    inside: (sources,) bool, which of them a gradient comes to by Pᵀ ḡ, as other processes visit
        them in this step; None: B alone
    weights: (rows of `back`, kinds), Pᵀ f where the table has a frame
    replaced: the rows of the table that this minibatch wrote; None before its gradient came
    written: (batch, width) the gradients that it wrote, where there are two passes
    """

    def __init__(
        self,
        hop: Hop,
        back: Back,
        nodes: Tensor,
        table: History,
        *,
        corrected: bool,
        step: int,
        size: int | None = None,
        inside: Tensor | None = None,
        weights: Tensor | None = None,
    ) -> None:
        self.hop = hop
        self.back = back
        self.nodes = nodes
        count = hop.count(len(nodes))
        self.targets = nodes if hop.rows is None else nodes[hop.rows[:count]]
        self.table = table
        self.corrected = corrected and hop.edges.num_entries > 0
        self.step = step
        self.size = len(nodes) if size is None else size
        self.inside = inside
        self.weights = weights
        self.replaced: Replaced | None = None
        self.written: Tensor | None = None

    def attach(self, answer: Tensor, h: Tensor, mean: Tensor | None = None) -> Tensor:
        """`answer`, with gradients of its neighbours to h: (targets, width), (sources, width).

        mean: μ, where the answer has the dropout residual √R P̂ (h - μ) and a first pass the rest
        """
        if mean is None:
            return _Attached.apply(answer, h, self._single)
        return _AttachedResidual.apply(answer, h, mean, self._residual)

    def attach_first(self, answer: Tensor, mean: Tensor) -> Tensor:
        """The same for the pass without dropout, whose answers the residual is added to."""
        return _Attached.apply(answer, mean, self._first) if self.corrected else answer

    def _single(self, g: Tensor) -> Tensor:
        """(targets, width) -> (sources, width)."""
        self._write(g)
        return self._with_history(self._corrections(g) if self.corrected else None, g)

    def _residual(self, g: Tensor) -> tuple[Tensor, Tensor | None]:
        """The gradients of h and of μ. Pᵀ ḡ goes through h, which is what exact training has."""
        self._write(g)
        self.written = g[: len(self.targets)]
        if not self.corrected:
            return self._with_history(None, g), None
        drawn = self._corrections(g, root=True)
        of_mean = -drawn  # before the history is added to `drawn` in place
        return self._with_history(drawn, g), of_mean

    def _first(self, g: Tensor) -> Tensor:
        # The residual is added to this answer, so its gradient came first and wrote the table. What
        # came from the first pass's own next level was not written: within B it goes by the sample.
        assert self.written is not None
        rows = self._sampling()
        rows = rows[rows < len(self.targets)]
        unwritten = g.index_select(0, rows) - self.written.index_select(0, rows)
        return self._corrections(g) + self._sampled(unwritten, rows, self.hop.scale, inside=True)

    def _write(self, g: Tensor) -> None:
        if self.replaced is not None:
            raise RuntimeError(
                "a second backward pass of one batch.run(model): the history of gradients keeps "
                "what one pass gives; add the losses up, or run the batch again"
            )
        per_node = self.size if self.back.left is None else self.back.left * self.size
        rows = scale_rows(per_node, g[: len(self.targets)])
        self.replaced = self.table.replace(self.targets, rows, self.step)

    def _with_history(self, others: Tensor | None, g: Tensor) -> Tensor:
        count = len(self.nodes)
        average = self.table.average(self.back.rows, g.dtype, self.weights).div_(self.size)
        places = self.back.places
        if others is None and places is None and self.hop.edges.columns == count:
            return average
        if others is None:
            others = g.new_zeros((self.hop.edges.columns, g.shape[1]))
        if places is None:
            others[:count] += average
        else:
            others.index_add_(0, places, average)
        return others

    def _sampling(self) -> Tensor:
        """(rows,) the targets that have sampled neighbours, ascending: with `few`, hardly any."""
        return self.hop.edges.counts.nonzero()[:, 0]

    def _corrections(self, g: Tensor, *, root: bool = False) -> Tensor:
        """R P̂ᵀ δ, or with `root` √R P̂ᵀ δ: (targets, width) -> (sources, width)."""
        assert self.replaced is not None
        rows = self._sampling()
        delta = g.index_select(0, rows)
        visited = rows[rows < len(self.targets)]
        before = self.table.replaced(self.replaced.of(visited), g.dtype).to(g.device) / self.size
        if self.back.left is not None:
            left = self.back.left.index_select(0, visited).to(g.dtype)[:, None]
            before = torch.where(left == 0, 0, before / left)
        delta[: len(visited)] -= before
        scale = self.hop.scale.sqrt() if root else self.hop.scale
        return self._sampled(delta, rows, scale, inside=False)

    def _sampled(self, delta: Tensor, rows: Tensor, scale: Tensor, *, inside: bool) -> Tensor:
        """scale P̂ᵀ δ over the entries within B x B, or over all others: (sources, width).

        δ: (rows, width), of the given targets; that of all others is 0
        """
        count, edges = len(self.nodes), self.hop.edges.rows(rows)
        if not len(rows):
            return delta.new_zeros((edges.columns, delta.shape[1]))
        weights = edges.weights(delta.dtype) * edges.spread(scale.index_select(0, rows))
        visited = edges.indices < count
        if self.inside is not None:
            visited |= self.inside.index_select(0, edges.indices)
        within = (edges.spread(rows) < len(self.targets)) & visited
        weights = weights.masked_fill(within != inside, 0)
        return CSR(edges.indptr, edges.indices, weights, edges.columns).transposed @ delta


class _Attached(torch.autograd.Function):
    @staticmethod
    def forward(ctx, answer: Tensor, h: Tensor, way: Callable[[Tensor], Tensor]) -> Tensor:  # type: ignore[no-untyped-def]
        ctx.way = way
        return answer.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx, g: Tensor) -> tuple[Tensor, Tensor, None]:  # type: ignore[no-untyped-def]
        return g, ctx.way(g), None


class _AttachedResidual(torch.autograd.Function):
    @staticmethod
    def forward(ctx, answer: Tensor, h: Tensor, mean: Tensor, way) -> Tensor:  # type: ignore[no-untyped-def]
        ctx.way = way
        return answer.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx, g: Tensor) -> tuple[Tensor, Tensor, Tensor | None, None]:  # type: ignore[no-untyped-def]
        of_h, of_mean = ctx.way(g)
        return g, of_h, of_mean, None
