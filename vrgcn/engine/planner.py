"""The planner: draws neighbours and lays out plans, several minibatches at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from vrgcn.engine.plan import Hop, Plan, entry_weights
from vrgcn.engine.relabel import Relabel
from vrgcn.engine.sampling import Importance, Sample, full, thinned, uniform
from vrgcn.graph.propagation import Propagation
from vrgcn.graph.sparse import CSR, offsets

SAMPLERS = ("full", "uniform", "importance", "none")
ENTRIES_AT_ONCE = 1 << 18  # 5 MB of rows of P


class _Field(NamedTuple):
    """The sources of a hop, and the hop."""

    sources: Tensor
    hop: Hop


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
        self._relabel = Relabel(P.num_nodes)

    def plan(self, nodes: Tensor, generator: torch.Generator) -> Plan:
        """The plan of the minibatch `nodes` (batch,), all different."""
        return self._plan(nodes, None, generator)

    def plans(self, nodes: Tensor, batch_size: int, generator: torch.Generator) -> Iterator[Plan]:
        """The plans of the minibatches that `nodes`, all different, are cut into.

        The neighbours of several minibatches are drawn together: for one alone, calling PyTorch
        takes longer than the work.
        """
        at_once = self._batches_at_once(nodes, batch_size)
        for together in nodes.split(batch_size * at_once):
            batches = together.split(batch_size)
            if len(batches) == 1:
                yield self._plan(together, None, generator)
                continue
            fields = self._fields(together, batch_size, generator)
            for batch, field in zip(batches, fields, strict=True):
                yield self._plan(batch, field, generator)

    def _plan(self, nodes: Tensor, field: _Field | None, generator: torch.Generator) -> Plan:
        """field: that of the last call, if it was drawn already"""
        levels, hops = [nodes], list[Hop | None]()
        for call in reversed(range(self.calls)):
            targets = levels[-1]
            if not self._propagates(call):
                levels.append(targets)
                hops.append(None)
                continue
            field = field or self._field(targets, call, generator)
            levels.append(field.sources)
            hops.append(field.hop)
            field = None
        return Plan(tuple(reversed(levels)), tuple(reversed(hops)))

    def _propagates(self, call: int) -> bool:
        """Whether a call has a hop: the model makes it, and it is not answered from P X."""
        return call > 0 or (call == 0 and not self.preprocess)

    def _batches_at_once(self, nodes: Tensor, batch_size: int) -> int:
        """How many minibatches are drawn together, at most ENTRIES_AT_ONCE entries of P."""
        if self.sampler not in ("uniform", "none") or not self._propagates(self.calls - 1):
            return 1  # importance sampling has one draw for a minibatch, and others are slow anyway
        if len(nodes) <= batch_size:
            return 1
        indptr = self.P.neighbours.indptr
        counts = indptr.index_select(0, nodes + 1) - indptr.index_select(0, nodes)
        if not self.history:
            counts.clamp_(max=self.fanouts[-1])
        elif self.history_cap is not None:
            counts.clamp_(max=self.history_cap)
        largest = int(offsets(counts)[::batch_size].diff().max())
        return max(1, ENTRIES_AT_ONCE // max(largest, 1))

    def _field(self, targets: Tensor, call: int, generator: torch.Generator) -> _Field:
        """The hop of one call."""
        sample = self._sample(targets, call, generator)
        history = self._history_rows(targets, generator) if self.history else None
        sources, edges = self._relabel.one(targets, sample.edges)
        hop = Hop(sample.own, edges, sample.scale, history).know(**self._facts)
        return _Field(sources, hop)

    def _fields(self, targets: Tensor, size: int, generator: torch.Generator) -> list[_Field]:
        """The hops of the last call, for `size` targets each."""
        sample = self._sample(targets, self.calls - 1, generator)
        own, scale, edges = sample.own.split(size), sample.scale.split(size), sample.edges
        parts: list[CSR | None] = [None] * len(own)
        if self.history:
            parts[:] = self._history_rows(targets, generator).split(size)
        columns = (
            entry_weights(sample.scale, edges),
            entry_weights(sample.scale.sqrt(), edges),
        )
        fields, start = [], 0
        relabelled = self._relabel.several(targets, size, edges)
        for found, o, s, p in zip(relabelled, own, scale, parts, strict=True):
            end = start + found.edges.num_entries
            weights, roots = (column[start:end] for column in columns)
            hop = Hop(o, found.edges, s, p).know(
                weights=weights,
                root_weights=roots,
                again=found.again,
                apart=found.apart,
                **self._facts,
            )
            fields.append(_Field(found.sources, hop.know(one_each=True) if edges.one_each else hop))
            start = end
        return fields

    @cached_property
    def _facts(self) -> dict[str, bool]:
        """What is so for every hop because it is so for all nodes."""
        own = self.P.diagonal
        facts = {} if own.any() else {"has_own": False}
        return facts | {"own_is_one": bool((own == 1).all())}

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
