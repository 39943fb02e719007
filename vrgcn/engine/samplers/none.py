"""No neighbour at all: only histories speak. R is never used."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from vrgcn.engine.samplers import Sample
from vrgcn.graph.propagation import Propagation


class Nothing:
    random = False
    shared = False
    draws_own = False

    @classmethod
    def build(cls, fanouts: Sequence[int]) -> Nothing:
        return cls()

    def computes_neighbours(self, level: int) -> bool:
        return False

    def sample(
        self, P: Propagation, targets: Tensor, level: int, generator: torch.Generator
    ) -> Sample:
        return no_neighbours(P, targets)


def no_neighbours(P: Propagation, targets: Tensor) -> Sample:
    """Only the nodes' own edges."""
    empty = P.take(targets, targets.new_zeros(len(targets) + 1), targets[:0])
    return Sample(P.own_rows(targets), empty, torch.ones(len(targets), dtype=P.dtype))
