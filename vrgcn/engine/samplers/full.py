"""Every neighbour, R = 1: the exact product."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from vrgcn.engine.samplers import Sample
from vrgcn.graph.propagation import Propagation


class Full:
    random = False
    shared = False
    draws_own = False

    @classmethod
    def build(cls, fanouts: Sequence[int]) -> Full:
        return cls()

    def computes_neighbours(self, level: int) -> bool:
        return True

    def sample(
        self, P: Propagation, targets: Tensor, level: int, generator: torch.Generator
    ) -> Sample:
        one = torch.ones(len(targets), dtype=P.dtype)
        return Sample(P.own_rows(targets), P.rows(targets), one)
