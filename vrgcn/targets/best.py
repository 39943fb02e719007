"""The best new partners of nodes, found in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from vrgcn.graph.predicted_edges import PredictedEdges
from vrgcn.pairs.first_places import first_places
from vrgcn.targets.ranking import ENTRIES, Scorer, without


class Best(NamedTuple):
    """pairs: (rows, 2); ranks: (rows,) from 1 for each source; scores: (rows,)"""

    pairs: Tensor
    ranks: Tensor
    scores: Tensor

    @staticmethod
    def none() -> Best:
        """Return no rows."""
        empty = torch.empty(0, dtype=torch.int64)
        return Best(empty.view(0, 2), empty, torch.empty(0))


def best_partners(
    scorer: Scorer, edges: PredictedEdges, sources: Tensor, top: int, direction: int = 0
) -> Iterator[Best]:
    """The best `top` targets of each source in a direction, best first, a chunk of sources at a
    time. Edges that are known, in any split, and a node with itself are left out; a source with
    fewer new targets has fewer rows. Of equal scores the node that comes first is the better."""
    targets = edges.ends(direction).targets
    for part in sources.split(max(ENTRIES // max(len(targets), 1), 1)):
        scores = scorer.against(part, direction).cpu()
        without(scores, edges, direction, part, edges.known, loops=False)
        best = [first_places(row, top) for row in scores]
        rows = torch.repeat_interleave(torch.arange(len(part)), torch.tensor([*map(len, best)]))
        places = torch.cat(best)
        ranks = torch.cat([torch.arange(1, len(each) + 1) for each in best])
        pairs = torch.stack([part[rows], places + targets.start], dim=1)
        yield Best(pairs, ranks, scores[rows, places])
