"""Kinds of nodes, such as users and items: ranges of the one numbering that all nodes share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from itertools import accumulate

import torch
from torch import Tensor

from vrgcn.files.kinds import is_text
from vrgcn.files.mistakes import InputError

BETWEEN = "\x1f"  # kind and id, where both are one text
ONE = ""  # the kind of all nodes of a graph of one table, which has no name


@dataclass(frozen=True)
class Kinds:
    """sizes: how many nodes each kind has, in the order of the numbering
    target: the kind whose nodes have labels; None if nothing has
    widths: how many feature columns each kind has; a kind that is not there has none
    """

    sizes: Mapping[str, int]
    target: str | None = None
    widths: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.sizes:
            raise InputError("a graph of several kinds needs at least one kind of nodes")
        for name, size in self.sizes.items() if self.named else ():
            if not name or not is_text(name):
                raise InputError(f"the name of a kind must be a text, not {name!r}")
            if BETWEEN in name:
                raise InputError(f"the name of a kind cannot hold {BETWEEN!r}: {name!r}")
            if size < 1:
                raise InputError(f"kind {name!r} has no nodes: leave it out")
        if self.target is not None:
            self.check(self.target)

    @staticmethod
    def one(nodes: int = 0, width: int = 0) -> Kinds:
        """The one kind of a graph of one table."""
        return Kinds({ONE: nodes}, ONE, {ONE: width})

    @property
    def named(self) -> bool:
        """Whether kinds have names: not in a graph of one table."""
        return self.names != (ONE,)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.sizes)

    @property
    def num_nodes(self) -> int:
        return self._ends[-1]

    @cached_property
    def _ends(self) -> list[int]:
        return list(accumulate(self.sizes.values()))

    @cached_property
    def _last(self) -> Tensor:
        """(kinds - 1,) the first node of each kind but the first."""
        return torch.tensor(self._ends[:-1], dtype=torch.int64)

    def columns(self, kind: str) -> range:
        """The columns of a kind among those of all kinds, which follow each other in the order of
        the kinds."""
        self.check(kind)
        before = self.names[: self.names.index(kind)]
        start = sum(self.widths.get(name, 0) for name in before)
        return range(start, start + self.widths.get(kind, 0))

    def range(self, kind: str) -> range:
        """The nodes of a kind in the numbering of all."""
        self.check(kind)
        end = self._ends[self.names.index(kind)]
        return range(end - self.sizes[kind], end)

    def nodes(self, kind: str) -> Tensor:
        """(nodes of the kind,) their numbers among all nodes."""
        own = self.range(kind)
        return torch.arange(own.start, own.stop)

    def of(self, nodes: Tensor) -> Tensor:
        """(len(nodes),) the place of each node's kind among `names`."""
        return torch.searchsorted(self._last.to(nodes.device), nodes, right=True)

    def name_of(self, node: int) -> str:
        """The kind of one node."""
        return self.names[int(self.of(torch.tensor([node])))]

    def within(self, kind: str, nodes: Tensor) -> Tensor:
        """Numbers within their kind, from 0, of nodes of that kind."""
        return nodes - self.range(kind).start

    def check(self, kind: str) -> None:
        """Refuse a kind that does not exist."""
        if kind not in self.sizes:
            near = get_close_matches(str(kind), self.names, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise InputError(f"there is no kind {kind!r}; there are {', '.join(self.names)}{hint}")
