"""Values of pairs, such as ratings: the terms of their loss."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from vrgcn.graph.pairs import Pairs
from vrgcn.pairs.terms import EpochPairs, Terms

NUMBER_LOSSES = ("mse", "mae")


class ValueSource(EpochPairs):
    """Draws the terms of an epoch: every training pair with its value.

    loss: mse or mae of numbers, in units of the training values' deviation; cross-entropy of
        classes
    share: of the training pairs that an epoch scores, drawn anew in each
    """

    shared = False  # negatives, which values do not have

    def __init__(self, pairs: Pairs, loss: str, share: float = 1.0) -> None:
        super().__init__(pairs, pairs.train, share)
        self.loss = loss
        values = pairs.values["train"]
        self.labels = values if loss == "cross-entropy" else values.float()
        deviation = float(values.double().std(correction=0))
        self._unit = deviation or 1.0

    @property
    def count(self) -> int:
        """Terms in an epoch."""
        return self.scored

    def draw(self, generator: torch.Generator, chosen: Tensor | None = None) -> Terms:
        """The terms of an epoch; a pair without a direction is turned in a random one.

        chosen: places among `train`; None: all
        """
        labels = self.labels if chosen is None else self.labels[chosen]
        return Terms(self.turned(chosen, generator), labels)

    def losses(self, terms: Terms, scores: Tensor) -> Tensor:
        """(terms,) the loss of each, from what a decoder says of it: (terms, 1), or (terms, 1,
        classes)."""
        assert terms.labels is not None
        labels = terms.labels.to(scores.device)
        if self.loss == "cross-entropy":
            return F.cross_entropy(scores[:, 0], labels, reduction="none")
        error = (scores[:, 0] - labels) / self._unit
        return error.square() if self.loss == "mse" else error.abs()
