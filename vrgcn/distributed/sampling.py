"""Samplers that compute only own neighbours: copies lack the averaged features to compute them
from."""

from __future__ import annotations

import torch
from torch import Tensor

from vrgcn.engine.samplers import Sample, Sampler
from vrgcn.graph.edges import kept_entries
from vrgcn.graph.propagation import Propagation


class AtHome:
    """Wraps a sampler without noise (R = 1). Its neighbours that are copies are not computed but
    read from the history, like neighbours that it did not choose.

    own: number of nodes of the local graph that are its own
    """

    draws_own = False

    def __init__(self, sampler: Sampler, own: int) -> None:
        self.sampler = sampler
        self.own = own
        self.random, self.shared = sampler.random, sampler.shared

    def computes_neighbours(self, level: int) -> bool:
        return self.sampler.computes_neighbours(level)

    def sample(
        self, P: Propagation, targets: Tensor, level: int, generator: torch.Generator
    ) -> Sample:
        drawn = self.sampler.sample(P, targets, level, generator)
        kept = kept_entries(drawn.edges, drawn.edges.indices < self.own)
        return Sample(drawn.own, kept, drawn.scale)
