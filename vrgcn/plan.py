"""Plans: the nodes and edges of one minibatch, laid out before any activation is computed.

For a model that propagates L times, a plan has L + 1 levels of nodes, from the input (level 0) to
the minibatch itself (level L), and a hop from each level to the next. A level starts with the
nodes of the next one, in the same order: the targets of a hop are the first of its sources.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from vrgcn.propagation import Propagation
from vrgcn.sampling import Importance, Sample, full, thinned, uniform
from vrgcn.sparse import CSR, is_sparse, offsets, scale_rows

ENTRIES_AT_ONCE = 1 << 18  # 5 MB of rows of P
SAMPLERS = ("full", "uniform", "importance", "none")


@dataclass(frozen=True)
class Hop:
    """What one call of `propagate` uses.

    own: (targets,), the weight of each target's own activation
    edges: (targets, sources) CSR, sampled entries of P (columns are places among the sources)
    scale: (targets,), R: own * h + R * (edges @ h) has the mean P h
    history: (targets, nodes) CSR, the rows of P for the history average; None where not used

    `combine(pick(h))` is R P̂ h. What is picked are rows for each entry where that is less work than
    the rows of all sources, as with one sampled neighbour each; else h itself.
    """

    own: Tensor
    edges: CSR
    scale: Tensor
    history: CSR | None

    @cached_property
    def has_own(self) -> bool:
        """Whether any target's own activation has a weight: not in GraphSAGE's mean."""
        return bool(self.own.any())

    @cached_property
    def own_is_one(self) -> bool:
        """Whether every target's own activation has weight 1, as in an MLP."""
        return bool((self.own == 1).all())

    def pick(self, x: Tensor) -> Tensor:
        """Of (sources, ...) the rows that `combine` takes: (entries, ...) or as they are."""
        if is_sparse(x) or not self.by_entry:
            return x
        return x.index_select(0, self.edges.indices)

    def combine(self, picked: Tensor, *, root: bool = False) -> Tensor:
        """R P̂ x, or with `root` √R P̂ x, from what `pick(x)` gave: (targets, width)."""
        scale = self.scale.sqrt() if root else self.scale
        if is_sparse(picked) or not self.by_entry:
            return scale_rows(scale, self.edges @ picked)
        if self._one_each:
            return scale_rows(scale * self.edges.values, picked)
        rows = scale_rows(scale[self.edges.row_of_entry] * self.edges.values, picked)
        empty = rows.new_zeros((len(scale), rows.shape[1]))
        return empty.index_add(0, self.edges.row_of_entry, rows)

    @cached_property
    def by_entry(self) -> bool:
        """Whether `pick` takes a row for each entry."""
        return self.edges.num_entries <= self.edges.columns

    @cached_property
    def _one_each(self) -> bool:
        return self.edges.num_entries == len(self.own) and bool((self.edges.counts == 1).all())

    def to(self, device: torch.device) -> Hop:
        return Hop(
            self.own.to(device),
            self.edges.to(device),
            self.scale.to(device),
            None if self.history is None else self.history.to(device),
        )


@dataclass(frozen=True)
class Plan:
    """levels: node ids, the input first, the minibatch last; hops: one per call, None where the
    call is answered by preprocessing."""

    levels: tuple[Tensor, ...]
    hops: tuple[Hop | None, ...]

    @property
    def nodes(self) -> Tensor:
        """(batch,) the minibatch."""
        return self.levels[-1]

    @property
    def sizes(self) -> list[int]:
        """How many nodes each level has."""
        return [len(level) for level in self.levels]

    @property
    def sampled_edges(self) -> int:
        """Neighbours whose activations are computed anew."""
        return sum(hop.edges.num_entries for hop in self.hops if hop is not None)

    @property
    def history_reads(self) -> int:
        """Neighbours whose activations are read from the history."""
        return sum(hop.history.num_entries for hop in self.hops if hop is not None and hop.history)

    def to(self, device: torch.device) -> Plan:
        if device.type == "cpu":
            return self
        return Plan(
            tuple(level.to(device) for level in self.levels),
            tuple(None if hop is None else hop.to(device) for hop in self.hops),
        )


@dataclass(frozen=True)
class _Drawn:
    """What a sampler answered for some targets, and their rows of P for the history average."""

    sample: Sample
    history: CSR | None

    def split(self, size: int) -> list[_Drawn]:
        """Those of `size` targets each, in order."""
        samples = self.sample.split(size)
        histories = [None] * len(samples) if self.history is None else self.history.split(size)
        return [_Drawn(*both) for both in zip(samples, histories, strict=True)]


class Planner:
    """Makes plans for one model on one graph.

    calls: how many times the model propagates
    sampler: one of SAMPLERS; "none" samples nothing, so that only the history speaks
    fanout: neighbours to sample per node, for each call from the input up, or one number for all
    sample_size: nodes that "importance" draws per hop
    preprocess: the first call is answered from P X, and needs no neighbours
    history: whether hops carry the rows of P for the history average
    history_cap: average the histories of at most so many neighbours, drawn at random (the paper's
        footnote on very high degrees); None reads all of them
    """

    def __init__(
        self,
        P: Propagation,
        calls: int,
        sampler: str,
        *,
        fanout: int | Sequence[int] = 1,
        sample_size: int = 512,
        preprocess: bool = False,
        history: bool = False,
        history_cap: int | None = None,
    ) -> None:
        if sampler not in SAMPLERS:
            raise ValueError(f"sampler {sampler!r} is none of {', '.join(SAMPLERS)}")
        if history_cap is not None and history_cap < 1:
            raise ValueError(f"history_cap must be at least 1, not {history_cap}")
        if sample_size < 1:
            raise ValueError(f"sample_size must be at least 1, not {sample_size}")
        self.P = P
        self.calls = calls
        self.sampler = sampler
        self.fanouts = fanout_per_call(fanout, calls)
        self.sample_size = sample_size
        self.preprocess = preprocess
        self.history = history
        self.history_cap = history_cap
        self._importance = Importance(P) if sampler == "importance" else None
        # Where each node stands among the sources of the hop at hand. One array for all plans:
        # clearing it costs the size of the hop, not of the graph.
        self._place = torch.full((P.num_nodes,), -1, dtype=torch.int64)

    def plan(self, nodes: Tensor, generator: torch.Generator) -> Plan:
        """The plan of the minibatch `nodes` (batch,), all different."""
        return self._plan(nodes, None, generator)

    def plans(self, nodes: Tensor, batch_size: int, generator: torch.Generator) -> Iterator[Plan]:
        """The plans of the minibatches that `nodes` are cut into.

        The neighbours of several minibatches are drawn together: for one alone, calling PyTorch
        takes longer than the work.
        """
        for together in nodes.split(batch_size * self._batches_at_once(nodes, batch_size)):
            batches = together.split(batch_size)
            drawn: list[_Drawn | None] = [None] * len(batches)
            if len(batches) > 1:
                drawn[:] = self._draw(together, self.calls - 1, generator).split(batch_size)
            for batch, neighbours in zip(batches, drawn, strict=True):
                yield self._plan(batch, neighbours, generator)

    def _plan(self, nodes: Tensor, drawn: _Drawn | None, generator: torch.Generator) -> Plan:
        """drawn: for the last call, that of the minibatch itself"""
        levels, hops = [nodes], list[Hop | None]()
        for call in reversed(range(self.calls)):
            targets = levels[-1]
            if not self._propagates(call):
                levels.append(targets)
                hops.append(None)
                continue
            drawn = drawn or self._draw(targets, call, generator)
            sources, edges = self._relabel(targets, drawn.sample.edges)
            levels.append(sources)
            hops.append(Hop(drawn.sample.own, edges, drawn.sample.scale, drawn.history))
            drawn = None
        return Plan(tuple(reversed(levels)), tuple(reversed(hops)))

    def _propagates(self, call: int) -> bool:
        """Whether a call has a hop: the model makes it, and it is not answered from P X."""
        return call > 0 or (call == 0 and not self.preprocess)

    def _batches_at_once(self, nodes: Tensor, batch_size: int) -> int:
        """How many minibatches are drawn together, at most ENTRIES_AT_ONCE entries of P."""
        if self._importance is not None or not self._propagates(self.calls - 1):
            return 1  # importance sampling draws the same nodes for a whole minibatch
        if len(nodes) <= batch_size:
            return 1
        indptr = self.P.neighbours.indptr
        counts = indptr.index_select(0, nodes + 1) - indptr.index_select(0, nodes)
        if self.history and self.history_cap is not None:
            counts.clamp_(max=self.history_cap)
        elif not self.history and self.sampler == "uniform":
            counts.clamp_(max=self.fanouts[-1])
        ends = offsets(counts)[::batch_size]
        largest = int(ends.diff().max())
        return max(1, ENTRIES_AT_ONCE // max(largest, 1))

    def _draw(self, targets: Tensor, call: int, generator: torch.Generator) -> _Drawn:
        sample = self._sample(targets, call, generator)
        return _Drawn(sample, self._history_rows(targets, generator) if self.history else None)

    def _sample(self, targets: Tensor, call: int, generator: torch.Generator) -> Sample:
        if self.sampler == "full":
            return full(self.P, targets)
        if self._importance is not None:
            return self._importance(self.P, targets, self.sample_size, generator)
        fanout = self.fanouts[call] if self.sampler == "uniform" else 0
        return uniform(self.P, targets, fanout, generator)

    def _history_rows(self, targets: Tensor, generator: torch.Generator) -> CSR:
        if self.history_cap is None:
            return self.P.neighbours.rows(targets)
        return thinned(self.P, targets, self.history_cap, generator)

    def _relabel(self, targets: Tensor, edges: CSR) -> tuple[Tensor, CSR]:
        """Sources (targets first, then the other columns, ascending) and edges among them."""
        if not edges.num_entries:
            return targets, CSR(edges.indptr, edges.indices, edges.values, len(targets))
        place = self._place
        place.index_copy_(0, targets, torch.arange(len(targets)))
        others = torch.unique(edges.indices[place.index_select(0, edges.indices) < 0])
        sources = torch.cat([targets, others])
        place.index_copy_(0, others, torch.arange(len(targets), len(sources)))
        indices = place.index_select(0, edges.indices)
        place.index_fill_(0, sources, -1)
        return sources, CSR(edges.indptr, indices, edges.values, len(sources))


def fanout_per_call(fanout: int | Sequence[int], calls: int) -> list[int]:
    """One fan-out for each call of `propagate`, from the input up."""
    if calls == 0:  # an MLP samples nothing, whatever the others of a comparison sample
        return []
    fanouts = [fanout] * calls if isinstance(fanout, int) else [int(f) for f in fanout]
    if len(fanouts) == 1:
        fanouts = fanouts * calls
    if len(fanouts) != calls:
        raise ValueError(
            f"fanout has {len(fanouts)} entries but the model propagates {calls} times; "
            "give one number, or one for each"
        )
    if any(f < 0 for f in fanouts):
        raise ValueError(f"fanout must not be negative: {fanouts}")
    return fanouts
