"""Edges that are to be predicted, split into training, validation and test edges: the pairs of one
relation, or the triples of all.

A direction is a relation or its reverse. There is one question only: which targets does a source
have in a direction?
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from vrgcn.files.mistakes import InputError
from vrgcn.graph.sparse import slices


class Ends(NamedTuple):
    """kinds: of sources and targets; sources, targets: the nodes at either end of a direction"""

    kinds: tuple[str, str]
    sources: range
    targets: range


class PredictedEdges(ABC):
    """Edges of some relations. The first column of their rows has sources, the last one targets.

    word: for one of them; columns: names of the columns of rows
    loops: True if a node may be its own target
    train, val, test: (edges, columns)
    negatives: by split, rows that are no edges, for scores; given: those that somebody gave,
        against which edges are ranked
    rules: what was done against leaks, a sentence each
    """

    word: ClassVar[str]
    columns: ClassVar[tuple[str, ...]]
    loops: ClassVar[bool]
    train: Tensor
    val: Tensor
    test: Tensor
    negatives: Mapping[str, Tensor] = MappingProxyType({})
    given: Mapping[str, Tensor] = MappingProxyType({})
    rules: tuple[str, ...]

    @property
    @abstractmethod
    def num_nodes(self) -> int:
        """The number of nodes in which all ends lie."""

    @property
    @abstractmethod
    def relations(self) -> tuple[str, ...]:
        """Names of the relations."""

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Names of the directions."""

    @property
    @abstractmethod
    def kinds(self) -> tuple[str, ...]:
        """The kinds of all ends."""

    @property
    @abstractmethod
    def arguments(self) -> dict[str, Any]:
        """Arguments of a `PairModel` that predicts them."""

    @abstractmethod
    def ends(self, direction: int = 0) -> Ends:
        """Return what lies at the ends of a direction."""

    @abstractmethod
    def both_ways(self, rows: Tensor) -> Tensor:
        """Return the questions that rows answer: (questions, 3) source, direction and target."""

    @property
    def in_no_split(self) -> Tensor:
        """Known edges that are in no split: they are no negatives either."""
        return self.train[:0]

    def find(self, name: str) -> int:
        """The number of a direction: by its name, or without the kinds where that is clear."""
        short = [direction.partition("-")[2].rpartition("-")[0] for direction in self.names]
        named = [*zip(self.names, short, strict=True)]
        places = [place for place, names in enumerate(named) if name in names]
        if len(places) == 1:
            return places[0]
        if places:
            raise InputError(
                f"several relations are called {name!r}: give one of "
                f"{', '.join(self.names[place] for place in places)}"
            )
        near = get_close_matches(name, [*self.names, *short], n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"one is {self.names[0]!r}"
        raise InputError(f"there is no relation {name!r} among {len(self.names):,}: {hint}")

    def split(self, name: str) -> Tensor:
        """(edges, columns) of `train`, `val` or `test`."""
        edges: Tensor = getattr(self, name)
        return edges

    @cached_property
    def known(self) -> KnownEdges:
        """The edges of all splits, and those that are in none."""
        return KnownEdges.of(torch.cat([self.train, self.val, self.test, self.in_no_split]), self)

    @cached_property
    def known_in_training(self) -> KnownEdges:
        """The training edges."""
        return KnownEdges.of(self.train, self)

    @cached_property
    def known_until_val(self) -> KnownEdges:
        """The training and validation edges: a validation that left out test edges would tell the
        choice of a model which they are."""
        return KnownEdges.of(torch.cat([self.train, self.val]), self)

    def counts(self) -> str:
        """Return the number of edges of each split, in words."""
        return ", ".join(f"{name} {len(self.split(name)):,}" for name in ("train", "val", "test"))


@dataclass(frozen=True, eq=False)
class KnownEdges:
    """A set of edges, each in all directions in which it is asked for.

    keys: (edges,) ascending; one number for each source, direction and target
    """

    keys: Tensor
    num_nodes: int

    @staticmethod
    def of(rows: Tensor, like: PredictedEdges) -> KnownEdges:
        """Return the set of some rows, whose nodes and directions are those of `like`."""
        if 2 * len(like.relations) * like.num_nodes**2 >= 2**63:
            raise InputError(
                f"{len(like.relations):,} relations of {like.num_nodes:,} nodes have more possible "
                "triples than 64 bits can count: predict one relation"
            )
        sources, directions, targets = like.both_ways(rows).unbind(1)
        empty = KnownEdges(rows.new_empty(0), like.num_nodes)
        return KnownEdges(empty.key(sources, targets, directions).unique(), like.num_nodes)

    def key(self, sources: Tensor, targets: Tensor | int, directions: Tensor | int = 0) -> Tensor:
        """The numbers of edges, broadcast."""
        return (directions * self.num_nodes + sources) * self.num_nodes + targets

    def has(self, sources: Tensor, targets: Tensor, directions: Tensor | int = 0) -> Tensor:
        """Whether edges are in the set, in the shape of all three together."""
        key = self.key(sources, targets, directions)
        if not len(self.keys):
            return torch.zeros(key.shape, dtype=torch.bool)
        place = torch.searchsorted(self.keys, key).clamp_(max=len(self.keys) - 1)
        return self.keys[place] == key

    def partners(self, sources: Tensor, directions: Tensor | int = 0) -> tuple[Tensor, Tensor]:
        """All targets of some sources in a direction each: (entries,) places among the sources, and
        (entries,) targets."""
        start = self.key(sources, 0, directions)
        first = torch.searchsorted(self.keys, start)
        counts = torch.searchsorted(self.keys, start + self.num_nodes) - first
        rows, places = slices(first, counts)
        return rows, self.keys[places] - start[rows]

    @cached_property
    def degrees(self) -> Tensor:
        """(nodes,) how many edges of the first direction each node is the source of."""
        sources = torch.div(self.keys, self.num_nodes, rounding_mode="floor")
        return torch.bincount(sources, minlength=self.num_nodes)[: self.num_nodes]
