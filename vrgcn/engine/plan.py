"""Plans: the nodes and edges of one minibatch, laid out before any activation is computed.

For a model that propagates L times, a plan has L + 1 levels of nodes, from the input (level 0) to
the minibatch itself (level L), and a hop from each level to the next. A level starts with the
nodes of the next one, in the same order: the targets of a hop are the first of its sources.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from vrgcn.graph.sparse import CSR, is_sparse, scale_rows


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

    def pick(self, x: Tensor) -> Tensor:
        """Of (sources, ...) the rows that `combine` takes: (entries, ...) or as they are."""
        if is_sparse(x) or not self.by_entry:
            return x
        return x.index_select(0, self.edges.indices)

    def combine(self, picked: Tensor, *, root: bool = False) -> Tensor:
        """R P̂ x, or with `root` √R P̂ x, from what `pick(x)` gave: (targets, width)."""
        if is_sparse(picked) or not self.by_entry:
            return scale_rows(self.scale.sqrt() if root else self.scale, self.edges @ picked)
        rows = self._column(root).to(picked.dtype) * picked
        if self.one_each:
            return rows
        empty = rows.new_zeros((len(self.own), rows.shape[1]))
        return empty.index_add(0, self.edges.row_of_entry, rows)

    def add(self, base: Tensor, picked: Tensor, *, root: bool = False) -> Tensor:
        """base + combine(picked), in one step where that is possible."""
        if is_sparse(picked) or not self.by_entry or not self.one_each:
            return base + self.combine(picked, root=root)
        return torch.addcmul(base, picked, self._column(root).to(picked.dtype))

    def _column(self, root: bool) -> Tensor:
        return self.root_weights if root else self.weights

    # What follows a planner knows from several minibatches at once, and says so by `know`.

    @cached_property
    def has_own(self) -> bool:
        """Whether any target's own activation has a weight: not in GraphSAGE's mean."""
        return bool(self.own.any())

    @cached_property
    def own_is_one(self) -> bool:
        """Whether every target's own activation has weight 1, as in an MLP."""
        return bool((self.own == 1).all())

    @cached_property
    def by_entry(self) -> bool:
        """Whether `pick` takes a row for each entry."""
        return self.edges.num_entries <= self.edges.columns

    @cached_property
    def one_each(self) -> bool:
        """Whether every target has one sampled neighbour."""
        return self.edges.one_each

    @cached_property
    def weights(self) -> Tensor:
        """(entries, 1): R P̂."""
        return entry_weights(self.scale, self.edges)

    @cached_property
    def root_weights(self) -> Tensor:
        """(entries, 1): √R P̂."""
        return entry_weights(self.scale.sqrt(), self.edges)

    @cached_property
    def again(self) -> Tensor:
        """(again,): the entries whose neighbour is a target too."""
        return (self.edges.indices < len(self.own)).nonzero()[:, 0]

    @cached_property
    def apart(self) -> Tensor:
        """(entries,): places among the sources that come after the targets, and after these those
        that `again` names."""
        targets, sources = len(self.own), self.edges.columns
        places = self.edges.indices - targets
        more = torch.arange(len(self.again), device=places.device) + sources - targets
        return places.index_copy_(0, self.again, more)

    def know(self, **facts: Any) -> Hop:
        """This hop, some of the above filled in."""
        vars(self).update(facts)
        return self

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


def entry_weights(scale: Tensor, edges: CSR) -> Tensor:
    """(entries, 1): each entry times the scale (rows,) of its row."""
    rows = scale.repeat_interleave(edges.counts, output_size=edges.num_entries)
    return (rows * edges.values)[:, None]
