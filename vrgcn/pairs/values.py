"""Values of pairs, such as ratings: the terms of their loss."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from vrgcn.graph.pairs import Pairs
from vrgcn.pairs.terms import Terms

NUMBER_LOSSES = ("mse", "mae")


class ValueSource:
    """Draws the terms of an epoch: every training pair with its value.

    loss: mse or mae of numbers, in units of the training values' deviation; cross-entropy of
        classes
    share: of the training pairs that an epoch scores, drawn anew in each
    """

    shared = False  # negatives, which values do not have

    def __init__(self, pairs: Pairs, loss: str, share: float = 1.0) -> None:
        self.pairs = pairs
        self.scored = max(round(share * len(pairs.train)), 1)
        self.loss = loss
        values = pairs.values["train"]
        self.train = pairs.train
        self.labels = values if loss == "cross-entropy" else values.float()
        deviation = float(values.double().std(correction=0))
        self._unit = deviation or 1.0

    @property
    def count(self) -> int:
        """Terms in an epoch."""
        return self.scored

    def chosen(self, generator: torch.Generator) -> Tensor:
        """(scored pairs,) places among `train` of the pairs that an epoch scores."""
        if self.scored == len(self.train):
            return torch.arange(self.scored)
        return torch.randperm(len(self.train), generator=generator)[: self.scored].sort().values

    def draw(self, generator: torch.Generator, chosen: Tensor | None = None) -> Terms:
        """The terms of an epoch; a pair without a direction is turned in a random one.

        chosen: places among `train`; None: all
        """
        pairs = self.train if chosen is None else self.train[chosen]
        labels = self.labels if chosen is None else self.labels[chosen]
        if not self.pairs.directed:
            turned = torch.rand(len(pairs), generator=generator) < 0.5
            pairs = torch.where(turned[:, None], pairs.flip(1), pairs)
        return Terms(pairs, labels)

    def losses(self, terms: Terms, scores: Tensor) -> Tensor:
        """(terms,) the loss of each, from what a decoder says of it: (terms, 1), or (terms, 1,
        classes)."""
        assert terms.labels is not None
        labels = terms.labels.to(scores.device)
        if self.loss == "cross-entropy":
            return F.cross_entropy(scores[:, 0], labels, reduction="none")
        error = (scores[:, 0] - labels) / self._unit
        return error.square() if self.loss == "mse" else error.abs()
