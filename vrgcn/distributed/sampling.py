"""Samplers that compute only own neighbours: copies lack the averaged features to compute them
from."""

from __future__ import annotations

import torch
from torch import Tensor

from vrgcn.engine.samplers import Sample, Sampler
from vrgcn.graph.propagation import Propagation
from vrgcn.graph.sparse import CSR, offsets


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
        edges = drawn.edges
        home = edges.indices < self.own
        counts = torch.bincount(edges.row_of_entry[home], minlength=edges.num_rows)
        values = None if edges.values is None else edges.values[home]
        kept = CSR(offsets(counts), edges.indices[home], values, edges.columns, edges.scale)
        return Sample(drawn.own, kept, drawn.scale)
