"""Pairs of nodes that are to be predicted: the edges of one relation, split into training,
validation and test pairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from vrgcn.graph.kinds import ONE
from vrgcn.graph.sparse import CSR, offsets

EDGES = "edges"  # the name of the one relation of a graph without kinds


@dataclass(frozen=True)
class PairTarget:
    """A column of edges that is predicted.

    name: of the column
    classes: names of its classes; empty where it holds numbers
    """

    name: str
    classes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Pairs:
    """The pairs of one relation.

    relation: its name; EDGES in a graph without kinds
    directed: whether (u, v) and (v, u) are different pairs; if not, each pair is here once
    sources, targets: the nodes that a pair may have at either end
    train, val, test: (pairs, 2) source and target of each
    negatives: by split, (pairs, 2) that are no edges, drawn once, for scores
    given: by split, (pairs, 2) negatives that somebody gave, against which its pairs are ranked;
        they are in `negatives` too
    kinds: of sources and targets
    rules: what was done against leaks, a sentence each
    said: what else there is to say of the split, a sentence each
    aside: (pairs, 2) known pairs that are in no split: they are no negatives either
    target: the column of the pairs that is predicted; None if it is whether they are linked
    values: of such a column, the values of the pairs, by split: (pairs,) as `Column` has them
    """

    relation: str
    directed: bool
    sources: range
    targets: range
    train: Tensor
    val: Tensor
    test: Tensor
    negatives: Mapping[str, Tensor] = field(default_factory=dict)
    given: Mapping[str, Tensor] = field(default_factory=dict)
    kinds: tuple[str, str] = (ONE, ONE)
    rules: tuple[str, ...] = ()
    said: tuple[str, ...] = ()
    aside: Tensor | None = None
    target: PairTarget | None = None
    values: Mapping[str, Tensor] = field(default_factory=dict)

    def split(self, name: str) -> Tensor:
        """(pairs, 2) of `train`, `val` or `test`."""
        pairs: Tensor = getattr(self, name)
        return pairs

    @property
    def num_nodes(self) -> int:
        return max(self.sources.stop, self.targets.stop)

    @cached_property
    def known(self) -> KnownPairs:
        """The pairs of all splits, and those that are in none."""
        aside = [] if self.aside is None else [self.aside]
        return KnownPairs.of(torch.cat([self.train, self.val, self.test, *aside]), self)

    @cached_property
    def known_in_training(self) -> KnownPairs:
        """The training pairs."""
        return KnownPairs.of(self.train, self)

    @cached_property
    def known_until_val(self) -> KnownPairs:
        """The training and validation pairs: a validation that left out test pairs would tell the
        choice of a model which they are."""
        return KnownPairs.of(torch.cat([self.train, self.val]), self)

    def __str__(self) -> str:
        counts = (f"{name} {len(self.split(name)):,}" for name in ("train", "val", "test"))
        what = self.relation if self.target is None else f"{self.relation}.{self.target.name}"
        return f"pairs of {what}: {', '.join(counts)}"


@dataclass(frozen=True, eq=False)
class KnownPairs:
    """A set of pairs; of pairs without a direction, each is in it in both.

    partners: (nodes, nodes) CSR, the targets of each source, ascending
    """

    partners: CSR

    @staticmethod
    def of(pairs: Tensor, like: Pairs) -> KnownPairs:
        """The set of these pairs, which have a direction if those of `like` do."""
        nodes = like.num_nodes
        if not like.directed:
            pairs = torch.cat([pairs, pairs.flip(1)])
        key = torch.unique(pairs[:, 0] * nodes + pairs[:, 1])
        rows = torch.div(key, nodes, rounding_mode="floor")
        counts = torch.bincount(rows, minlength=nodes)
        return KnownPairs(CSR(offsets(counts), key - rows * nodes, None, nodes))

    @cached_property
    def _keys(self) -> Tensor:
        """(pairs,) ascending."""
        return self.partners.row_of_entry * self.partners.columns + self.partners.indices

    def has(self, sources: Tensor, targets: Tensor) -> Tensor:
        """Whether the pairs of these nodes are in the set, in the shape of both together."""
        key = sources * self.partners.columns + targets
        if not len(self._keys):
            return torch.zeros(key.shape, dtype=torch.bool)
        place = torch.searchsorted(self._keys, key).clamp_(max=len(self._keys) - 1)
        return self._keys[place] == key

    def degrees(self) -> Tensor:
        """(nodes,) how many pairs each node is the source of."""
        return self.partners.counts
