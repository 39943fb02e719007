"""The best new targets of nodes in a direction, found in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from vrgcn.graph.triples import Triples
from vrgcn.pairs.best import Best
from vrgcn.pairs.ranking import ENTRIES
from vrgcn.triples.ranking import TripleScorer, candidates_alone


def best_targets(
    scorer: TripleScorer, triples: Triples, sources: Tensor, direction: int, top: int
) -> Iterator[Best]:
    """The best `top` targets of each source in a direction, best first, a chunk of sources at a
    time. Known triples of any split are left out; a source with fewer new targets has fewer rows.
    Of equal scores the node that comes first is the better."""
    for part in sources.split(max(ENTRIES // triples.num_nodes, 1)):
        directions = torch.full_like(part, direction)
        scores = scorer.against(part, directions).cpu()
        scores = candidates_alone(scores, triples, part, directions, triples.known)
        order = scores.argsort(dim=1, descending=True, stable=True)[:, :top]
        best = scores.gather(1, order)
        row, place = (best > -torch.inf).nonzero(as_tuple=True)
        pairs = torch.stack([part[row], order[row, place]], dim=1)
        yield Best(pairs, place + 1, best[row, place])
