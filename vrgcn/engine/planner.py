"""The planner: draws neighbours and lays out plans, several minibatches at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import torch
from torch import Tensor

from vrgcn.engine.plan import Hop, Level, Plan, Relation
from vrgcn.engine.relabel import Relabel
from vrgcn.engine.samplers import Sampler
from vrgcn.engine.thinning import history_rows
from vrgcn.graph.propagation import Propagation
from vrgcn.graph.sparse import CSR, offsets

ENTRIES_AT_ONCE = 1 << 18  # 5 MB of rows of P

# Which generator a minibatch draws from: by its place in the epoch, and whether it is for the
# neighbours of several minibatches together or for what is left of its own.
Generators = Callable[[int, bool], torch.Generator]


class Planner:
    """Makes plans for one model on one graph.

    matrices: for each level from the input up, the matrices that the model propagates it over, by
        relation; none where P X answers
    sampler: which neighbours to compute anew
    history: whether hops carry the rows of P for the history average
    history_cap: average the histories of at most so many neighbours, drawn at random (the paper's
        footnote on very high degrees); None reads all of them
    """

    def __init__(
        self,
        matrices: Sequence[Mapping[Relation, Propagation]],
        sampler: Sampler,
        *,
        history: bool = False,
        history_cap: int | None = None,
    ) -> None:
        if history_cap is not None and history_cap < 1:
            raise ValueError(f"history_cap must be at least 1, not {history_cap}")
        self.matrices = matrices
        self.sampler = sampler
        self.history = history
        self.history_cap = history_cap
        nodes = max((P.num_nodes for level in matrices for P in level.values()), default=0)
        self._relabel = Relabel(nodes)

    def plan(self, nodes: Tensor, generator: torch.Generator) -> Plan:
        """The plan of the minibatch `nodes` (batch,), all different."""
        return self._plan(nodes, None, lambda: generator)

    def plans(
        self, nodes: Tensor, batch_size: int, generators: Generators, start: int = 0
    ) -> Iterator[Plan]:
        """The plans of the minibatches that `nodes`, all different, are cut into.

        The neighbours of several minibatches are drawn together: for one alone, calling PyTorch
        takes longer than the work. What a minibatch draws depends on its place alone, so an epoch
        can be taken up anywhere.

        start: the first minibatch to give
        """
        batches = nodes.split(batch_size)
        at_once = self._batches_at_once(nodes, batch_size)
        for first in range(start - start % at_once, len(batches), at_once):
            group = batches[first : first + at_once]
            tops: Sequence[Level | None] = [None] * len(group)
            if len(group) > 1:
                tops = self._tops(torch.cat(group), batch_size, generators(first, True))
            for place, (batch, top) in enumerate(zip(group, tops, strict=True), start=first):
                if place >= start:
                    yield self._plan(batch, top, partial(generators, place, False))

    def _plan(
        self, nodes: Tensor, top: Level | None, generator: Callable[[], torch.Generator]
    ) -> Plan:
        """top: the level below the minibatch, if it was drawn already"""
        levels = [Level(nodes)]
        drawing: torch.Generator | None = None
        for number in reversed(range(len(self.matrices))):
            targets = levels[-1].nodes
            if not self.matrices[number]:
                levels.append(Level(targets))
            elif top is not None:
                levels.append(top)
            else:
                drawing = drawing or generator()
                levels.append(self._level(targets, number, drawing))
            top = None
        return Plan(tuple(reversed(levels)))

    def _batches_at_once(self, nodes: Tensor, batch_size: int) -> int:
        """How many minibatches are drawn together, at most ENTRIES_AT_ONCE entries of P."""
        top = self.matrices[-1] if self.matrices else {}
        if self.sampler.shared or not top or len(nodes) <= batch_size:
            return 1
        counts = sum((P.degrees(nodes) for P in top.values()), start=torch.zeros_like(nodes))
        if self.history and self.history_cap is not None:
            counts.clamp_(max=self.history_cap)
        largest = int(offsets(counts)[::batch_size].diff().max())
        return max(1, ENTRIES_AT_ONCE // max(largest, 1))

    def _level(self, targets: Tensor, number: int, generator: torch.Generator) -> Level:
        """A level and its hops to the targets."""
        hops = self._hops(targets, number, generator)
        sources, edges = self._relabel.one(targets, [hop.edges for hop in hops.values()])
        return _level(sources, hops, edges)

    def _tops(self, targets: Tensor, size: int, generator: torch.Generator) -> list[Level]:
        """The level below each minibatch of `size` targets."""
        hops = self._hops(targets, len(self.matrices) - 1, generator)
        parted = [_split(hop, size) for hop in hops.values()]
        found = self._relabel.several(targets, size, [hop.edges for hop in hops.values()])
        return [
            _level(sources, dict(zip(hops, mine, strict=True)), edges)
            for (sources, edges), *mine in zip(found, *parted, strict=True)
        ]

    def _hops(
        self, targets: Tensor, number: int, generator: torch.Generator
    ) -> dict[Relation, Hop]:
        """Hops whose edges still have nodes as columns."""
        hops = {}
        for over, P in self.matrices[number].items():
            sample = self.sampler.sample(P, targets, number, generator)
            history = (
                history_rows(P, targets, self.history_cap, generator) if self.history else None
            )
            hops[over] = Hop(sample.own, sample.edges, sample.scale, history)
        return hops


def _level(sources: Tensor, hops: Mapping[Relation, Hop], edges: Sequence[CSR]) -> Level:
    """The level of the hops, their edges put into columns of the sources."""
    placed = zip(hops.items(), edges, strict=True)
    return Level(
        sources,
        {over: Hop(hop.own, edge, hop.scale, hop.history) for (over, hop), edge in placed},
    )


def _split(hop: Hop, size: int) -> list[Hop]:
    """Runs of `size` targets."""
    scale = hop.scale.split(size)
    own = hop.own.split(size) if isinstance(hop.own, Tensor) else [hop.own] * len(scale)
    history = [None] * len(scale) if hop.history is None else hop.history.split(size)
    parts = zip(own, hop.edges.split(size), scale, history, strict=True)
    return [Hop(*part) for part in parts]
