"""Slots: the places of nodes in tables that have room for more of each kind.

Nodes of a kind follow each other, as the engine wants them; behind them lie free slots. A graph
without kinds has one, called "". A slot is used once: what a removed node leaves stays empty until
the graph is folded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from vrgcn.graph.graph import Graph
from vrgcn.graph.kinds import ONE, Kinds

_LEAST = 1024  # free slots of a kind
_SHARE = 4  # of a kind's nodes: one free slot for so many

ONLY = ONE  # the kind and the relation of a graph of one table


class FullError(RuntimeError):
    """No slot of a kind is free: the graph has to be folded."""


class Slots:
    """The slots of a graph.

    sizes: nodes of each kind in the graph that the slots are made for
    room: slots of each kind
    used: how many of them, the first ones, have or had a node
    """

    def __init__(self, graph: Graph) -> None:
        kinds = graph.kinds
        self.sizes = dict(kinds.sizes)
        self.room = {kind: n + max(_LEAST, n // _SHARE) for kind, n in self.sizes.items()}
        self.used = dict(self.sizes)
        self._first: dict[str, int] = {}
        self._base: dict[str, int] = {}
        total = base = 0
        for kind in self.sizes:
            self._first[kind], self._base[kind] = total, base
            total += self.room[kind]
            base += self.sizes[kind]
        self.total = total
        room = Kinds(self.room, kinds.target, kinds.widths)
        self.schema = replace(graph.schema, kinds=room)

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(self.sizes)

    def first(self, kind: str) -> int:
        """The first slot of a kind."""
        return self._first[kind]

    def of_graph(self, kind: str | None = None) -> Tensor:
        """(nodes of the graph,) their slots, in their order; of one kind, or of all."""
        if kind is not None:
            return torch.arange(self.first(kind), self.first(kind) + self.sizes[kind])
        return torch.cat([self.of_graph(kind) for kind in self.sizes])

    def numbers(self) -> Tensor:
        """(slots,) the number that the node of each had in the graph; -1 where it had none."""
        numbers = torch.full((self.total,), -1)
        numbers[self.of_graph()] = torch.arange(sum(self.sizes.values()))
        return numbers

    def number(self, slot: int) -> int:
        """The number that the node of one slot had in the graph."""
        kind = self.kind_of(slot)
        return slot - self._first[kind] + self._base[kind]

    def kind_of(self, slot: int) -> str:
        """The kind of a slot."""
        return next(kind for kind in reversed(self.kinds) if self._first[kind] <= slot)

    def kind_of_number(self, number: int) -> str:
        """The kind of a node of the graph."""
        return next(kind for kind in reversed(self.kinds) if self._base[kind] <= number)

    def free(self, kind: str, taken: int = 0) -> int:
        """The next free slot of a kind, after `taken` more."""
        place = self.used[kind] + taken
        if place >= self.room[kind]:
            raise FullError(kind)
        return self._first[kind] + place


class Undo:
    """Steps that take a change back, the last first."""

    def __init__(self) -> None:
        self._steps: list[Callable[[], None]] = []

    def add(self, step: Callable[[], None]) -> None:
        self._steps.append(step)

    def write(self, table: Tensor, rows: Tensor, values: Tensor) -> None:
        """Write rows of a table, to be restored. rows: all different"""
        before = table.index_select(0, rows)
        self.add(lambda: _put(table, rows, before))
        _put(table, rows, values)

    def run(self) -> None:
        """Take everything back."""
        while self._steps:
            self._steps.pop()()


def _put(table: Tensor, rows: Tensor, values: Tensor) -> None:
    table.index_copy_(0, rows, values.to(table))
