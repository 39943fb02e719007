"""Terms: what the loss of an epoch adds up, drawn anew for each.

A term has slots, each with a node: a source, its true partner, and negatives of that source.
Where negatives are shared by a minibatch (shared.py), terms are true pairs alone.

    logistic   a slot for the source and one for a partner, true or not: -log σ(± s)
    bpr        source, partner, negatives: the mean of -log σ(s₊ - s₋)
    softmax    source, partner, negatives: -log of the partner's share of Σ exp s

The loss of an epoch is the mean over its terms. Its gradient reaches the weights through the node
in each slot, so it is the sum over nodes of what reaches them through one node while all others
are held fixed: the one-sided gradients. `touching` finds the terms of some nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.graph.pairs import Pairs
from vrgcn.graph.sparse import CSR, offsets
from vrgcn.pairs.negatives import Avoided, NegativeSampler, Sampling
from vrgcn.pairs.shared import SharedNegatives

PairLoss = Literal["logistic", "bpr", "softmax"]
LOSSES: tuple[PairLoss, ...] = ("logistic", "bpr", "softmax")


@dataclass(frozen=True, eq=False)
class Terms:
    """nodes: (terms, slots) the source, its partner, negatives
    labels: (terms,) of logistic, 1 for a true pair and 0 for a negative; None for other losses
    weights: (terms,) of logistic; None if all are 1
    """

    nodes: Tensor
    labels: Tensor | None = None
    weights: Tensor | None = None

    def __len__(self) -> int:
        return len(self.nodes)

    def take(self, places: Tensor) -> Terms:
        """Some of the terms."""
        labels = None if self.labels is None else self.labels[places]
        weights = None if self.weights is None else self.weights[places]
        return Terms(self.nodes[places], labels, weights)

    @cached_property
    def _of_nodes(self) -> CSR:
        """(nodes, terms) CSR, an entry for each slot."""
        flat = self.nodes.reshape(-1)
        order = torch.argsort(flat, stable=True)
        counts = torch.bincount(flat)
        slots = self.nodes.shape[1]
        terms = torch.div(order, slots, rounding_mode="floor")
        return CSR(offsets(counts), terms, None, len(self))

    def touching(self, nodes: Tensor) -> Tensor:
        """Places of the terms that have one of the nodes in any slot, ascending."""
        known = nodes[nodes < self._of_nodes.num_rows]
        return self._of_nodes.rows(known).indices.unique()

    def losses(self, scores: Tensor) -> Tensor:
        """(terms,) the loss of each, from the scores (terms, slots - 1) of its source with its
        partners. Named by `labels`: logistic has them."""
        if self.labels is None:
            raise InputError("the loss of terms without labels is bpr or softmax")
        signs = 1 - 2 * self.labels.to(scores.device, scores.dtype)
        losses = F.softplus(signs * scores[:, 0])
        return losses if self.weights is None else losses * self.weights.to(losses)


def coupled_losses(kind: PairLoss, scores: Tensor) -> Tensor:
    """(terms,) the loss of terms that compare a true pair with negatives of its source.

    scores: (terms, 1 + negatives)
    """
    if kind == "bpr":
        return F.softplus(scores[:, 1:] - scores[:, :1]).mean(1)
    return F.cross_entropy(
        scores, torch.zeros(len(scores), dtype=torch.int64, device=scores.device), reduction="none"
    )


class EpochPairs:
    """The training pairs that an epoch scores.

    share: of the training pairs, drawn anew for each epoch
    """

    def __init__(self, pairs: Pairs, train: Tensor, share: float) -> None:
        self.pairs = pairs
        self.train = train
        self.score(share)

    def score(self, share: float) -> None:
        """From now on an epoch scores this share of the training pairs."""
        self.scored = max(round(share * len(self.train)), 1)

    def chosen(self, generator: torch.Generator) -> Tensor:
        """(scored pairs,) places among `train` of the pairs that an epoch scores."""
        if self.scored == len(self.train):
            return torch.arange(self.scored)
        return torch.randperm(len(self.train), generator=generator)[: self.scored].sort().values

    def turned(self, chosen: Tensor | None, generator: torch.Generator) -> Tensor:
        """(pairs, 2) the chosen pairs, or all; those without a direction in a random one."""
        pairs = self.train if chosen is None else self.train[chosen]
        if self.pairs.directed:
            return pairs
        turned = torch.rand(len(pairs), generator=generator) < 0.5
        return torch.where(turned[:, None], pairs.flip(1), pairs)


class TermSource(EpochPairs):
    """Draws the terms of an epoch.

    loss: one of LOSSES; negatives: for each true pair; sampling: how they are drawn
    temperature: scores are divided by it
    avoid: pairs that are no negatives: known ones of training, or of all splits
    share: of the training pairs, drawn anew for each epoch, that an epoch scores
    weights: (nodes,) logs of how often shared negatives count; None: once

    A pair without a direction is turned in a random one in each epoch.
    """

    def __init__(
        self,
        pairs: Pairs,
        loss: PairLoss,
        negatives: int,
        sampling: Sampling = "uniform",
        temperature: float = 1.0,
        share: float = 1.0,
        avoid: Avoided = "train",
    ) -> None:
        if sampling == "shared" and loss == "bpr":
            raise InputError(
                f"{setting('loss', 'bpr')} compares each pair with negatives of its own: shared "
                "ones are for softmax and logistic"
            )
        self.loss = loss
        self.negatives = negatives
        self.shared = sampling == "shared"
        self.temperature = temperature
        self.weights: Tensor | None = None
        known = pairs.known if avoid == "all" else pairs.known_in_training
        self.sampler = NegativeSampler(pairs, known, sampling)
        free = self.sampler.possible(pairs.train[:, 0])
        if not pairs.directed:
            free &= self.sampler.possible(pairs.train[:, 1])
        super().__init__(pairs, pairs.train[free], share)
        if not len(self.train):
            raise InputError(
                f"no training pair of {pairs.relation} has a source with a negative: every node is "
                "linked to every other one"
            )

    @property
    def count(self) -> int:
        """Terms in an epoch."""
        coupled = self.shared or self.loss != "logistic"
        return self.scored * (1 if coupled else 1 + self.negatives)

    def draw(self, generator: torch.Generator, chosen: Tensor | None = None) -> Terms:
        """The terms of an epoch. chosen: places among `train`; None: all"""
        true = self.turned(chosen, generator)
        if self.shared:
            return Terms(true)
        others = self.sampler.draw(true[:, 0], self.negatives, generator)
        if self.loss != "logistic":
            return Terms(torch.cat([true, others], dim=1))
        sources = true[:, :1].expand(-1, self.negatives)
        false = torch.stack([sources, others], dim=2).view(-1, 2)
        labels = torch.cat([torch.ones(len(true)), torch.zeros(len(false))])
        weights = None
        if self.negatives > 1:  # true pairs and negatives weigh the same together
            half = (1 + self.negatives) / 2
            weights = torch.where(labels > 0, half, half / self.negatives)
        return Terms(torch.cat([true, false]), labels, weights)

    def sharing(self, nodes: Tensor) -> SharedNegatives:
        """These nodes as the negatives of a minibatch."""
        return SharedNegatives(nodes, self.sampler.known, self.loss, self.temperature, self.weights)

    def losses(self, terms: Terms, scores: Tensor) -> Tensor:
        """(terms,) the loss of each term, from scores (terms, slots - 1)."""
        scores = scores / self.temperature
        if self.loss == "logistic":
            return terms.losses(scores)
        return coupled_losses(self.loss, scores)
