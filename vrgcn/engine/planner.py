"""The planner: draws neighbours and lays out plans, several minibatches at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import pairwise

import torch
from torch import Tensor

from vrgcn.engine.plan import Back, Hop, Level, Plan, Relation
from vrgcn.engine.relabel import Relabel
from vrgcn.engine.samplers import Sampler
from vrgcn.engine.thinning import history_rows
from vrgcn.files.mistakes import InputError
from vrgcn.graph.propagation import Propagation, neighbours
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
    gradients: whether plans carry the rows of Pᵀ for the average of gradients
    history_cap: average the histories of at most so many neighbours, drawn at random (the paper's
        footnote on very high degrees); None reads all of them
    """

    def __init__(
        self,
        matrices: Sequence[Mapping[Relation, Propagation]],
        sampler: Sampler,
        *,
        history: bool = False,
        gradients: bool = False,
        history_cap: int | None = None,
    ) -> None:
        if history_cap is not None and history_cap < 1:
            raise InputError(f"history_cap must be at least 1, not {history_cap}")
        self.matrices = matrices
        self.sampler = sampler
        self.history = history
        # All factors of Pᵀ = diag(right) Aᵀ diag(left) except the last, which the tables contain.
        self._transposed = {
            over: (P, replace(P.transposed, right=None))
            for level in matrices
            for over, P in level.items()
            if gradients
        }
        self.history_cap = history_cap
        nodes = max((P.num_nodes for level in matrices for P in level.values()), default=0)
        self._relabel = Relabel(nodes)

    def plan(self, nodes: Tensor, generator: torch.Generator) -> Plan:
        """The plan of the minibatch `nodes` (batch,), all different."""
        return self._plan(nodes, None, lambda: generator)

    def plans(
        self, batches: Sequence[Tensor], generators: Generators, start: int = 0
    ) -> Iterator[Plan]:
        """The plans of minibatches that have no node in common.

        The neighbours of several minibatches are drawn together: for one alone, calling PyTorch
        takes longer than the work. What a minibatch draws depends on its place alone, so an epoch
        can be taken up anywhere.

        start: the first minibatch to give
        """
        for first, end in pairwise(self._groups(batches)):
            if end <= start:
                continue
            group = batches[first:end]
            tops: Sequence[_Top | None] = [None] * len(group)
            if len(group) > 1:
                tops = self._tops(torch.cat(list(group)), len(group[0]), generators(first, True))
            for place, (batch, top) in enumerate(zip(group, tops, strict=True), start=first):
                if place >= start:
                    yield self._plan(batch, top, partial(generators, place, False))

    def _plan(
        self, nodes: Tensor, top: _Top | None, generator: Callable[[], torch.Generator]
    ) -> Plan:
        """top: what was drawn for the minibatch already"""
        drawing = cache(generator)
        levels = [Level(nodes)]
        back: dict[Relation, Back] = {}
        for number in reversed(range(len(self.matrices))):
            targets = levels[-1].nodes
            if not self.matrices[number]:
                levels.append(Level(targets))
            elif len(levels) > 1:
                levels.append(self._level(targets, number, drawing(), levels[-1].hops))
            else:
                drawn = top or self._top(nodes, drawing())
                levels.append(drawn.level)
                back = drawn.back
        return Plan(tuple(reversed(levels)), back)

    def _groups(self, batches: Sequence[Tensor]) -> list[int]:
        """The first minibatch of each run that is drawn together, and the end of the last run.

        Together they have at most ENTRIES_AT_ONCE entries of P, and only the last of a run may be
        smaller than the others.
        """
        top = self.matrices[-1] if self.matrices else {}
        partial = any(P.spans for P in top.values())  # hops have rows of some targets only
        if self.sampler.shared or partial or not top or len(batches) <= 1:
            return list(range(len(batches) + 1))
        nodes = torch.cat(list(batches))
        counts = sum((P.degrees(nodes) for P in top.values()), start=torch.zeros_like(nodes))
        if self.history and self.history_cap is not None:
            counts.clamp_(max=self.history_cap)
        sizes = [len(batch) for batch in batches]
        ends = offsets(counts).index_select(0, offsets(torch.tensor(sizes)))
        at_once = max(1, ENTRIES_AT_ONCE // max(int(ends.diff().max()), 1))
        starts = [0]
        for place in range(1, len(batches)):
            first = sizes[starts[-1]]
            if place - starts[-1] == at_once or sizes[place - 1] < first or sizes[place] > first:
                starts.append(place)
        return [*starts, len(batches)]

    def _level(
        self,
        targets: Tensor,
        number: int,
        generator: torch.Generator,
        above: Mapping[Relation, Hop] | None = None,
    ) -> Level:
        """A level and its hops to the targets. above: the hops from their level to the next"""
        hops = self._hops(targets, number, generator, above)
        sources, edges = self._relabel.one(targets, [hop.edges for hop in hops.values()])
        return _level(sources, hops, edges)

    def _top(self, nodes: Tensor, generator: torch.Generator) -> _Top:
        level = self._level(nodes, len(self.matrices) - 1, generator)
        return _Top(level, self._backs(nodes, level.hops, generator))

    def _tops(self, targets: Tensor, size: int, generator: torch.Generator) -> list[_Top]:
        """The result of `_top` for each minibatch of `size` targets."""
        hops = self._hops(targets, len(self.matrices) - 1, generator)
        parted = [_split(hop, size) for hop in hops.values()]
        found = self._relabel.several(targets, size, [hop.edges for hop in hops.values()])
        levels = [
            _level(sources, dict(zip(hops, mine, strict=True)), edges)
            for (sources, edges), *mine in zip(found, *parted, strict=True)
        ]
        return [
            _Top(level, self._backs(nodes, level.hops, generator))
            for level, nodes in zip(levels, targets.split(size), strict=True)
        ]

    def _backs(
        self, nodes: Tensor, hops: Mapping[Relation, Hop], generator: torch.Generator
    ) -> dict[Relation, Back]:
        """How gradients come back to `nodes`. hops: those to them, from the level below"""
        found = {}
        for over, (P, transposed) in self._transposed.items():
            if P.spans is not None:
                found[over] = self._part_back(P, transposed, nodes, generator)
                continue
            known = hops[over].history if over in hops else None
            A = P.adjacency
            same = transposed.adjacency is A and A.values is None
            if known is not None and same and self.history_cap is None:
                # The neighbours are the same in both directions, and known already.
                scale = None if P.right is None else P.right.index_select(0, nodes)
                rows = CSR(known.indptr, known.indices, None, known.columns, scale)
            else:
                rows = history_rows(transposed, nodes, self.history_cap, generator)
            left = None if P.left is None else P.left.index_select(0, nodes)
            found[over] = Back(rows, left)
        return found

    def _part_back(
        self, P: Propagation, transposed: Propagation, nodes: Tensor, generator: torch.Generator
    ) -> Back:
        """The way back over a relation that only some nodes have."""
        places, targets = transposed.reached(nodes), P.reached(nodes)
        assert places is not None
        assert targets is not None
        rows = history_rows(transposed, nodes[places], self.history_cap, generator)
        left = None if P.left is None else P.left.index_select(0, nodes[targets])
        return Back(rows, left, places, None if P.spans is None else P.spans[0])

    def _hops(
        self,
        targets: Tensor,
        number: int,
        generator: torch.Generator,
        above: Mapping[Relation, Hop] | None = None,
    ) -> dict[Relation, Hop]:
        """Hops whose edges still have nodes as columns."""
        hops = {}
        matrices = self.matrices[number]
        # A sampler may count neighbours, and a node has them over all relations together.
        counted = getattr(self.sampler, "counted", None)
        several = counted is not None and any(P.spans for P in matrices.values())
        known = neighbours(matrices.values(), targets) if several else None
        for over, P in matrices.items():
            rows = P.reached(targets)
            asked = targets if rows is None else targets[rows]
            if counted is not None and known is not None:
                own = known if rows is None else known[rows]
                sample = counted(P, asked, number, own)
            else:
                sample = self.sampler.sample(P, asked, number, generator)
            history = None
            if self.history:
                higher = above[over].history if above and over in above else None
                history = self._history(P, asked, generator, higher)
            hops[over] = Hop(sample.own, sample.edges, sample.scale, history, rows)
        return hops

    def _history(
        self, P: Propagation, targets: Tensor, generator: torch.Generator, known: CSR | None
    ) -> CSR:
        """Rows of P for the history average. known: those of the first targets, if they are"""
        if known is None or self.history_cap is not None:  # the cap draws anew at each level
            return history_rows(P, targets, self.history_cap, generator)
        if known.num_rows == len(targets):
            return known
        return known.above(P.rows(targets[known.num_rows :]))


@dataclass(frozen=True)
class _Top:
    """The draw for the minibatch itself: the level below it, and the way back to it."""

    level: Level
    back: dict[Relation, Back]


def _level(sources: Tensor, hops: Mapping[Relation, Hop], edges: Sequence[CSR]) -> Level:
    """The level of the hops, their edges put into columns of the sources."""
    placed = zip(hops.items(), edges, strict=True)
    return Level(
        sources,
        {over: replace(hop, edges=edge) for (over, hop), edge in placed},
    )


def _split(hop: Hop, size: int) -> list[Hop]:
    """Runs of `size` targets."""
    scale = hop.scale.split(size)
    own = hop.own.split(size) if isinstance(hop.own, Tensor) else [hop.own] * len(scale)
    history = [None] * len(scale) if hop.history is None else hop.history.split(size)
    parts = zip(own, hop.edges.split(size), scale, history, strict=True)
    return [Hop(*part) for part in parts]
