"""Negatives that all pairs of a minibatch share.

Scores of a source with all of them are one row of a product, and pairs of the same source have that
row in common: thousands of negatives cost less than a few that are drawn for each pair. The loss of
a true pair with score s, sₙ those of its source with the negatives n,

    softmax    log(exp s + Σ exp sₙ) - s
    logistic   (-log σ(s) - mean of log σ(-sₙ)) / 2

is a function of s and of one number of the source, its `pressure`: log Σ exp sₙ, or the mean. With
weights w of the negatives, the sum of softmax is Σ wₙ exp sₙ, as if each were drawn wₙ times.

A known pair of any split is no negative, nor is a node of itself: such scores are left out.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from vrgcn.graph.predicted_edges import KnownEdges
from vrgcn.pairs.decoders import Decoder

ENTRIES = 1 << 22  # scores that are held at a time, without gradients
# Score of what is no negative, and pressure without any: minus infinity has no gradient, and would
# be taken for divergence in the table that keeps pressures.
_NOTHING = -1e30


class SharedNegatives:
    """The negatives of one minibatch.

    nodes: (negatives,) different nodes; known: pairs that are none
    loss: softmax or logistic; temperature: scores are divided by it
    weights: (nodes of the graph,) logs of weights, for softmax; None: all count once
    """

    def __init__(
        self,
        nodes: Tensor,
        known: KnownEdges,
        loss: str,
        temperature: float,
        weights: Tensor | None = None,
    ) -> None:
        self.nodes = nodes
        self._known = known
        self._loss = loss
        self._temperature = temperature
        self._weights = None if weights is None else weights[nodes]
        self._places = torch.full((known.num_nodes,), -1)
        self._places[nodes] = torch.arange(len(nodes))

    def pressure(self, decoder: Decoder, sources: Tensor, z: Tensor, negatives: Tensor) -> Tensor:
        """(sources,) what the negatives are for each source.

        sources: (sources,) nodes; z: (sources, width), negatives: (negatives, width) embeddings
        """
        rows, columns = (part.to(z.device) for part in self._not_negative(sources))
        scores = decoder.against(z, negatives) / self._temperature
        if self._weights is not None:
            scores = scores + self._weights.to(scores)
        scores = scores.index_put((rows, columns), scores.new_tensor(_NOTHING))
        if self._loss == "softmax":
            return scores.logsumexp(1).clamp(min=_NOTHING)
        count = len(self.nodes) - torch.bincount(rows, minlength=len(sources))
        return F.softplus(scores).sum(1) / count.clamp(min=1)

    @torch.no_grad()
    def fixed_pressure(
        self, decoder: Decoder, sources: Tensor, z: Tensor, negatives: Tensor
    ) -> Tensor:
        """The same without gradients, for many sources, in bounded memory."""
        size = max(ENTRIES // max(len(self.nodes), 1), 1)
        parts = zip(sources.split(size), z.split(size), strict=True)
        found = [self.pressure(decoder, some, rows, negatives) for some, rows in parts]
        return torch.cat(found) if found else z.new_zeros(0)

    def losses(self, scores: Tensor, pressure: Tensor) -> Tensor:
        """(pairs,) losses of true pairs, from their scores and the pressure of their sources."""
        scores = scores / self._temperature
        if self._loss == "softmax":
            return F.softplus(pressure - scores)
        return (F.softplus(-scores) + pressure) / 2

    def _not_negative(self, sources: Tensor) -> tuple[Tensor, Tensor]:
        """Rows and columns of the scores of sources with nodes that are no negatives of them."""
        rows, partners = self._known.partners(sources)
        place = self._places[partners]
        there = place >= 0
        own = self._places[sources]
        loops = (own >= 0).nonzero()[:, 0]
        rows = torch.cat([rows[there], loops])
        return rows, torch.cat([place[there], own[loops]])
