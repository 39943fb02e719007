"""The best new partners of nodes, found in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from vrgcn.graph.pairs import Pairs
from vrgcn.pairs.ranking import ENTRIES, Scorer, without


@dataclass(frozen=True)
class Best:
    """pairs: (rows, 2); ranks: (rows,) from 1 for each source; scores: (rows,)"""

    pairs: Tensor
    ranks: Tensor
    scores: Tensor


def best_partners(scorer: Scorer, pairs: Pairs, sources: Tensor, top: int) -> Iterator[Best]:
    """The best `top` targets of each source, best first, a chunk of sources at a time. Pairs that
    are known, in any split, and a node with itself are left out; a source with fewer new targets
    has fewer rows. Of equal scores the node that comes first is the better."""
    size = max(ENTRIES // max(len(pairs.targets), 1), 1)
    for part in sources.split(size):
        scores = without(scorer.against(part).cpu(), pairs, part, pairs.known)
        order = scores.argsort(dim=1, descending=True, stable=True)[:, :top]
        best = scores.gather(1, order)
        row, place = (best > -torch.inf).nonzero(as_tuple=True)
        targets = order[row, place] + pairs.targets.start
        yield Best(torch.stack([part[row], targets], dim=1), place + 1, best[row, place])
