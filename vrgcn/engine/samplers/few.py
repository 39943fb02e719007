"""All neighbours of the nodes that have at most `fanout`, none of the others; R = 1.

Made for histories in both directions: a hub averages many of them, whose errors cancel; a node with
two neighbours has nothing to cancel, and two neighbours are cheap to compute. Nothing is random.
"""

from __future__ import annotations

import torch
from torch import Tensor

from vrgcn.engine.samplers import Sample
from vrgcn.engine.samplers.none import no_neighbours
from vrgcn.engine.samplers.uniform import Uniform
from vrgcn.graph.propagation import Propagation
from vrgcn.graph.sparse import offsets


class Few(Uniform):
    """fanouts: the most neighbours of a node whose neighbours are computed, for each level from the
    input up"""

    random = False
    usual_fanout = 3
    passes_over = True  # neighbours of nodes that have many

    def computes_of(self, level: int, neighbours: Tensor) -> Tensor:
        return neighbours <= self.fanouts[level]

    def sample(
        self, P: Propagation, targets: Tensor, level: int, generator: torch.Generator
    ) -> Sample:
        return self.counted(P, targets, level, P.degrees(targets))

    def counted(self, P: Propagation, targets: Tensor, level: int, neighbours: Tensor) -> Sample:
        """The same, by the number of neighbours (targets,) that each has over all relations: errors
        of histories cancel in the sum over relations too."""
        if not self.fanouts[level]:
            return no_neighbours(P, targets)
        degree = P.degrees(targets)
        few = self.computes_of(level, neighbours)
        _, entries = P.adjacency.entries(targets[few])
        edges = P.take(targets, offsets(degree * few), entries)
        return Sample(P.own_rows(targets), edges, torch.ones(len(targets), dtype=P.dtype))
