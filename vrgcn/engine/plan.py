"""Plans: the nodes and edges of one minibatch, laid out before any activation is computed.

For a model that propagates on L levels, a plan has L + 1 of them, from the input (level 0) to the
minibatch itself (level L), and a hop from each level to the next for every relation that is
propagated there. A level starts with the nodes of the next one, in the same order: the targets of a
hop are the first of its sources. All of it is plain data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from vrgcn.graph.sparse import CSR, first_rows, is_dense, scale_rows, select_rows

# The name in `propagate(h, over=...)`; None if a model has one matrix.
Relation = str | None


@dataclass(frozen=True)
class Hop:
    """The entries of P that one call of `propagate` uses.

    own: (targets,) or one number, the weight of each target's own activation
    edges: (targets, sources) CSR, sampled entries of P (columns are places among the sources)
    scale: (targets,), R: own * h + R * (edges @ h) has the mean P h
    history: (targets, nodes) CSR, the rows of P for the history average; None if not used
    rows: (targets,) ascending, of a relation that only some nodes have: which nodes of the next
        level the targets are; None: all

    `combine(pick(h))` is R P̂ h. What is picked are rows for each entry where that is less work than
    the rows of all sources, as with one sampled neighbour each; else h itself.
    """

    own: Tensor | float
    edges: CSR
    scale: Tensor
    history: CSR | None
    rows: Tensor | None = None

    @property
    def targets(self) -> int:
        return self.edges.num_rows

    @property
    def by_entry(self) -> bool:
        """Whether `pick` takes a row for each entry."""
        return self.edges.num_entries <= self.edges.columns

    def pick(self, x: Tensor) -> Tensor:
        """The rows of (sources, ...) that `combine` takes: (entries, ...), or all as they are."""
        if not is_dense(x) or not self.by_entry:
            return x
        return x.index_select(0, self.edges.indices)

    def combine(self, picked: Tensor, *, root: bool = False) -> Tensor:
        """R P̂ x, or with `root` √R P̂ x, from what `pick(x)` gave: (targets, width)."""
        scale = self.scale.sqrt() if root else self.scale
        if not is_dense(picked) or not self.by_entry:
            return scale_rows(scale, self.edges @ picked)
        edges = self.edges
        weights = edges.weights(scale.dtype) * edges.spread(scale)
        rows = scale_rows(weights, picked)
        if edges.one_each:
            return rows
        empty = rows.new_zeros((self.targets, rows.shape[1]))
        return empty.index_add(0, edges.row_of_entry, rows)

    def to(self, device: torch.device) -> Hop:
        return Hop(
            self.own.to(device) if isinstance(self.own, Tensor) else self.own,
            self.edges.to(device),
            self.scale.to(device),
            None if self.history is None else self.history.to(device),
            None if self.rows is None else self.rows.to(device),
        )

    def own_rows(self, x: Tensor) -> Tensor:
        """The rows of (sources, ...) of the targets themselves."""
        return first_rows(x, self.targets) if self.rows is None else select_rows(x, self.rows)

    def count(self, batch: int) -> int:
        """How many of its targets are among the first `batch` nodes of the level."""
        return batch if self.rows is None else int(torch.searchsorted(self.rows, batch))


@dataclass(frozen=True)
class Level:
    """nodes: (nodes of this level,) ids, those of the next level first
    hops: to the next level, by relation; none where P X answers, and from the last level
    """

    nodes: Tensor
    hops: Mapping[Relation, Hop] = field(default_factory=dict)

    def to(self, device: torch.device) -> Level:
        return Level(
            self.nodes.to(device), {over: hop.to(device) for over, hop in self.hops.items()}
        )


@dataclass(frozen=True)
class Back:
    """How gradients of the minibatch's neighbours come back to it: Pᵀ g = rows @ (left g).

    rows: (batch, nodes) CSR, rows of Pᵀ = diag(right) Aᵀ diag(left) without its last factor, so
        that those of an unweighted graph need no weight per entry
    left: (batch,), that factor: what a gradient is multiplied by before it is kept; None if all
        are 1; of a relation that only some nodes have, for the targets of its hop
    places: (rows,) ascending, of such a relation: which nodes of the minibatch `rows` are of; None:
        all
    span: of such a relation, the range of nodes that have gradients to be kept; None: all
    """

    rows: CSR
    left: Tensor | None
    places: Tensor | None = None
    span: range | None = None

    def to(self, device: torch.device) -> Back:
        left = None if self.left is None else self.left.to(device)
        places = None if self.places is None else self.places.to(device)
        return Back(self.rows.to(device), left, places, self.span)


@dataclass(frozen=True)
class Plan:
    """levels: the input first, the minibatch last
    back: by relation, for estimators that keep gradients; the same at all levels
    """

    levels: tuple[Level, ...]
    back: Mapping[Relation, Back] = field(default_factory=dict)

    @property
    def nodes(self) -> Tensor:
        """(batch,) the minibatch."""
        return self.levels[-1].nodes

    @property
    def sizes(self) -> list[int]:
        """How many nodes each level has."""
        return [len(level.nodes) for level in self.levels]

    @property
    def hops(self) -> list[Hop]:
        """All hops, from the input up."""
        return [hop for level in self.levels for hop in level.hops.values()]

    @property
    def sampled_edges(self) -> int:
        """Neighbours whose activations are computed anew."""
        return sum(hop.edges.num_entries for hop in self.hops)

    @property
    def history_reads(self) -> int:
        """Neighbours whose activations are read from the history."""
        return sum(hop.history.num_entries for hop in self.hops if hop.history is not None)

    def to(self, device: torch.device) -> Plan:
        if device.type == "cpu":
            return self
        back = {over: rows.to(device) for over, rows in self.back.items()}
        return Plan(tuple(level.to(device) for level in self.levels), back)
