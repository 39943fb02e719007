"""Negatives: pairs that are no edges, drawn at random.

Negatives of the test contain no known pair of any split, so that none is wrong. Those of training
avoid training pairs only, those of validation also its own: if pairs of later splits were never
drawn, training, or the choice of a model, would learn a little of what is held out.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from vrgcn.files.mistakes import InputError
from vrgcn.graph.pairs import Pairs
from vrgcn.graph.predicted_edges import KnownEdges

Sampling = Literal["uniform", "degree", "shared"]
Avoided = Literal["all", "train"]
_POWER = 0.75  # of the degree, as word2vec draws words
_ROUNDS = 20  # of drawing again; what is left then is drawn from an exact list


class NegativeSampler:
    """Draws partners for sources.

    pairs: the relation; a node is never drawn for itself
    known: pairs that are never drawn
    sampling: uniform, or by the number of training pairs to the power 0.75; shared ones are uniform
    """

    def __init__(self, pairs: Pairs, known: KnownEdges, sampling: Sampling = "uniform") -> None:
        self.known = known
        self.targets = pairs.targets
        self._loops = pairs.sources.start < pairs.targets.stop and (
            pairs.targets.start < pairs.sources.stop
        )
        self._ends: Tensor | None = None
        if sampling == "degree":
            ends = pairs.train[:, 1] if pairs.directed else pairs.train.flatten()
            inside = ends - self.targets.start
            counts = torch.bincount(inside, minlength=len(self.targets)).double()
            self._ends = counts.pow(_POWER).cumsum(0)

    def possible(self, sources: Tensor) -> Tensor:
        """(sources,) bool: whether a source has any negative."""
        return self.known.degrees[sources] + int(self._loops) < len(self.targets)

    def draw(self, sources: Tensor, count: int, generator: torch.Generator) -> Tensor:
        """(sources, count) partners of each source, each with at least one negative."""
        wide = sources[:, None].expand(-1, count).reshape(-1)
        found = self._some(len(wide), generator)
        wrong = self._wrong(wide, found).nonzero()[:, 0]
        for _ in range(_ROUNDS):
            if not len(wrong):
                break
            found[wrong] = self._some(len(wrong), generator)
            wrong = wrong[self._wrong(wide[wrong], found[wrong])]
        for place in wrong.tolist():  # nodes that are linked to nearly all others
            allowed = self._allowed(int(wide[place]))
            found[place] = allowed[torch.randint(len(allowed), (1,), generator=generator)]
        return found.view(-1, count)

    def shared(self, count: int, generator: torch.Generator) -> Tensor:
        """(count,) different targets, or all of them, ascending: of some sources they are known
        partners."""
        order = torch.randperm(len(self.targets), generator=generator)[:count]
        return self.targets.start + order.sort().values

    def _some(self, count: int, generator: torch.Generator) -> Tensor:
        start, size = self.targets.start, len(self.targets)
        if self._ends is None:
            return start + torch.randint(size, (count,), generator=generator)
        place = torch.rand(count, dtype=torch.float64, generator=generator) * self._ends[-1]
        return start + torch.searchsorted(self._ends, place, right=True).clamp_(max=size - 1)

    def _wrong(self, sources: Tensor, targets: Tensor) -> Tensor:
        return (sources == targets) | self.known.has(sources, targets)

    def _allowed(self, source: int) -> Tensor:
        """All negatives of one source."""
        free = torch.ones(self.known.num_nodes, dtype=torch.bool)
        free[: self.targets.start], free[self.targets.stop :] = False, False
        free[self.known.partners(torch.tensor([source]))[1]] = False
        free[source] = False
        return free.nonzero()[:, 0]


def drawn_negatives(
    pairs: Pairs, count: int, generator: torch.Generator, known: KnownEdges | None = None
) -> Tensor:
    """(count, 2) pairs that are no edges, of uniform sources and targets, for scores.

    known: pairs that are never drawn; None: those of all splits
    """
    sampler = NegativeSampler(pairs, pairs.known if known is None else known)
    nodes = torch.arange(pairs.sources.start, pairs.sources.stop)
    free = nodes[sampler.possible(nodes)]
    if not len(free):
        raise InputError(
            f"every possible pair of {pairs.relation} is known: there is none to tell from them"
        )
    # A source is as likely as it has negatives, so that every negative is equally likely.
    room = (len(pairs.targets) - sampler.known.degrees[free]).double().cumsum(0)
    place = torch.rand(count, dtype=torch.float64, generator=generator) * room[-1]
    sources = free[torch.searchsorted(room, place, right=True).clamp_(max=len(free) - 1)]
    return torch.stack([sources, sampler.draw(sources, 1, generator)[:, 0]], dim=1)
