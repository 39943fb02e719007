"""Triples that are to be predicted: the edges of all relations of a graph, split into training,
validation and test triples.

A relation and its reverse are two directions, each with a number: relation r has the number r, its
reverse the number r + R of R relations. So the head of a triple is found as the tail of its
reverse, and there is one question alone: which targets does a source have in a direction?
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property

import torch
from torch import Tensor

from vrgcn.files.mistakes import InputError
from vrgcn.graph.pairs import Pairs

RELATIONS = "relations"  # what a run predicts that predicts the edges of all relations


@dataclass(frozen=True, eq=False)
class Triples:
    """The edges of all relations.

    directions: names of the R relations, then those of their reverses
    targets: (2 R) the kind that each direction leads to
    spans: (2 R, 2) first node and end of that kind
    num_nodes: of the graph
    train, val, test: (triples, 3) head, relation and tail of each
    rules: what was done against leaks, a sentence each
    """

    directions: tuple[str, ...]
    targets: tuple[str, ...]
    spans: Tensor
    num_nodes: int
    train: Tensor
    val: Tensor
    test: Tensor
    rules: tuple[str, ...] = ()

    def split(self, name: str) -> Tensor:
        """(triples, 3) of `train`, `val` or `test`."""
        triples: Tensor = getattr(self, name)
        return triples

    def both_ways(self, triples: Tensor) -> Tensor:
        """(2 triples, 3) source, direction and target: the triples, then their reverses."""
        turned = triples.flip(1) + torch.tensor([0, len(self.relations), 0])
        return torch.cat([triples, turned])

    @property
    def relations(self) -> tuple[str, ...]:
        """Names of the relations."""
        return self.directions[: len(self.directions) // 2]

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of all heads and tails."""
        return tuple(dict.fromkeys(self.targets))

    def reverse(self, direction: int) -> int:
        """The number of the reverse of a direction."""
        count = len(self.relations)
        return direction + count if direction < count else direction - count

    def find(self, name: str) -> int:
        """The number of a direction: by its name, or without the kinds where that is clear."""
        short = [direction.partition("-")[2].rpartition("-")[0] for direction in self.directions]
        named = [*zip(self.directions, short, strict=True)]
        places = [place for place, names in enumerate(named) if name in names]
        if len(places) == 1:
            return places[0]
        if places:
            raise InputError(
                f"several relations are called {name!r}: give one of "
                f"{', '.join(self.directions[place] for place in places)}"
            )
        near = get_close_matches(name, [*self.directions, *short], n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"one is {self.directions[0]!r}"
        raise InputError(f"there is no relation {name!r} among {len(self.directions):,}: {hint}")

    def pairs_of(self, direction: int) -> Pairs:
        """The pairs of one direction: sources and targets of its triples."""
        back = self.reverse(direction)
        every = [self.both_ways(self.split(name)) for name in ("train", "val", "test")]
        train, val, test = (part[part[:, 1] == direction][:, [0, 2]] for part in every)
        sources, targets = (range(*self.spans[place].tolist()) for place in (back, direction))
        kinds = self.targets[back], self.targets[direction]
        name = self.directions[direction]
        return Pairs(name, True, sources, targets, train, val, test, kinds=kinds)

    @cached_property
    def known(self) -> KnownTriples:
        """The triples of all splits."""
        return KnownTriples.of(torch.cat([self.train, self.val, self.test]), self)

    @cached_property
    def known_in_training(self) -> KnownTriples:
        """The training triples."""
        return KnownTriples.of(self.train, self)

    @cached_property
    def known_until_val(self) -> KnownTriples:
        """The training and validation triples: a validation that left out test triples would tell
        the choice of a model which they are."""
        return KnownTriples.of(torch.cat([self.train, self.val]), self)

    def __str__(self) -> str:
        counts = (f"{name} {len(self.split(name)):,}" for name in ("train", "val", "test"))
        return f"triples of {len(self.relations):,} relations: {', '.join(counts)}"


@dataclass(frozen=True, eq=False)
class KnownTriples:
    """A set of triples and their reverses.

    keys: (triples,) ascending; one number for each source, direction and target
    """

    keys: Tensor
    num_nodes: int

    @staticmethod
    def of(triples: Tensor, like: Triples) -> KnownTriples:
        """The set of these triples and their reverses; nodes and relations are those of `like`."""
        if len(like.directions) * like.num_nodes**2 >= 2**63:
            raise InputError(
                f"{len(like.relations):,} relations of {like.num_nodes:,} nodes have more possible "
                "triples than 64 bits can count: predict one relation"
            )
        empty = KnownTriples(torch.empty(0, dtype=torch.int64), like.num_nodes)
        key = empty.key(*like.both_ways(triples).unbind(1))
        return KnownTriples(key.unique(), like.num_nodes)

    def key(self, sources: Tensor, directions: Tensor, targets: Tensor | int) -> Tensor:
        """The number of triples, broadcast."""
        return (directions * self.num_nodes + sources) * self.num_nodes + targets

    def has(self, sources: Tensor, directions: Tensor, targets: Tensor) -> Tensor:
        """Whether triples are in the set, in the shape of all three together."""
        key = self.key(sources, directions, targets)
        if not len(self.keys):
            return torch.zeros(key.shape, dtype=torch.bool)
        place = torch.searchsorted(self.keys, key).clamp_(max=len(self.keys) - 1)
        return self.keys[place] == key

    def partners(self, sources: Tensor, directions: Tensor) -> tuple[Tensor, Tensor]:
        """All targets of some sources in a direction each: (entries,) places among the sources, and
        (entries,) targets."""
        start = self.key(sources, directions, 0)
        first = torch.searchsorted(self.keys, start)
        counts = torch.searchsorted(self.keys, start + self.num_nodes) - first
        rows = torch.repeat_interleave(torch.arange(len(sources)), counts)
        before = torch.repeat_interleave(counts.cumsum(0) - counts - first, counts)
        found = self.keys[torch.arange(len(rows)) - before]
        return rows, found - start[rows]
