"""Pairs of nodes that are to be predicted: the edges of one relation, split into training,
validation and test pairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from vrgcn.graph.kinds import ONE
from vrgcn.graph.predicted_edges import Ends, PredictedEdges

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
class Pairs(PredictedEdges):
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

    word: ClassVar = "pair"
    columns: ClassVar = ("source", "target")
    loops: ClassVar = False
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

    @property
    def num_nodes(self) -> int:
        return max(self.sources.stop, self.targets.stop)

    @property
    def relations(self) -> tuple[str, ...]:
        return (self.relation,)

    names = relations

    @property
    def arguments(self) -> dict[str, Any]:
        arguments: dict[str, Any] = {"relation": self.relation, "directed": self.directed}
        return (
            arguments if self.target is None else arguments | {"values": len(self.target.classes)}
        )

    @property
    def in_no_split(self) -> Tensor:
        return super().in_no_split if self.aside is None else self.aside

    def ends(self, direction: int = 0) -> Ends:
        return Ends(self.kinds, self.sources, self.targets)

    def both_ways(self, rows: Tensor) -> Tensor:
        """(questions, 3) source, 0 and target, ascending by source: the pairs, and their reverses
        if pairs have no direction."""
        every = rows if self.directed else torch.cat([rows, rows.flip(1)])
        sources, targets = every[every[:, 0].argsort(stable=True)].unbind(1)
        return torch.stack([sources, torch.zeros_like(sources), targets], dim=1)

    def __str__(self) -> str:
        what = self.relation if self.target is None else f"{self.relation}.{self.target.name}"
        return f"pairs of {what}: {self.counts()}"
