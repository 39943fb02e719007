"""Triples that are to be predicted: the edges of all relations of a graph, split into training,
validation and test triples.

A relation and its reverse are two directions, each with a number: relation r has the number r, its
reverse the number r + R of R relations. So the head of a triple is found as the tail of its
reverse, and there is one question alone: which targets does a source have in a direction?
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from vrgcn.graph.predicted_edges import Ends, PredictedEdges

RELATIONS = "relations"  # what a run predicts that predicts the edges of all relations


@dataclass(frozen=True, eq=False)
class Triples(PredictedEdges):
    """The edges of all relations.

    directions: names of the R relations, then those of their reverses
    targets: (2 R) the kind that each direction leads to
    spans: (2 R, 2) first node and end of that kind
    nodes: how many the graph has
    train, val, test: (triples, 3) head, relation and tail of each
    rules: what was done against leaks, a sentence each
    """

    word: ClassVar = "triple"
    columns: ClassVar = ("source", "relation", "target")
    loops: ClassVar = True
    directions: tuple[str, ...]
    targets: tuple[str, ...]
    spans: Tensor
    nodes: int
    train: Tensor
    val: Tensor
    test: Tensor
    rules: tuple[str, ...] = ()

    @property
    def num_nodes(self) -> int:
        return self.nodes

    def both_ways(self, triples: Tensor) -> Tensor:
        """(2 triples, 3) source, direction and target: the triples, then their reverses."""
        turned = triples.flip(1) + torch.tensor([0, len(self.relations), 0])
        return torch.cat([triples, turned])

    def ends(self, direction: int = 0) -> Ends:
        places = self.reverse(direction), direction
        sources, targets = (range(*self.spans[place].tolist()) for place in places)
        return Ends((self.targets[places[0]], self.targets[direction]), sources, targets)

    @property
    def names(self) -> tuple[str, ...]:
        return self.directions

    @property
    def relations(self) -> tuple[str, ...]:
        return self.directions[: len(self.directions) // 2]

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.targets))

    @property
    def arguments(self) -> dict[str, Any]:
        return {"relation": RELATIONS, "directed": True, "directions": self.directions}

    def reverse(self, direction: int) -> int:
        """The number of the reverse of a direction."""
        count = len(self.relations)
        return direction + count if direction < count else direction - count

    def __str__(self) -> str:
        return f"triples of {len(self.relations):,} relations: {self.counts()}"
