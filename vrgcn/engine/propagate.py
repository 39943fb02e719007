"""The `propagate` that a model is given in place of the textbook's P @ h."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from vrgcn.engine.node_rows import NodeRows
from vrgcn.engine.plan import Relation
from vrgcn.files.mistakes import InputError
from vrgcn.graph.relations import Schema
from vrgcn.graph.sparse import concatenate, first_rows, spread_rows

# From a level, a relation and the activations of the level to (estimated) averages for the next; of
# a relation that only some nodes have, for those that it reaches.
Answer = Callable[[int, Relation, Tensor], Tensor]


class Propagate:
    """The function that a model calls in place of the textbook's P @ h.

    It takes the activations of one level, (sizes[k], width), and gives the (estimated) averages for
    the next, (sizes[k + 1], width). Those nodes are the first of level k, so after
    `y = propagate(h)` the rows `h[:len(y)]` are the same nodes' own activations. What comes out
    of one level goes, through layers of any kind, into the next; the same h given again, over
    another relation, is the same level.

    rows: the nodes of each level
    ready: an h, and [own(h), propagate(h)] of it that lies in one piece already
    """

    def __init__(
        self,
        sizes: list[int],
        answer: Answer,
        rows: NodeRows,
        ready: tuple[Tensor, Tensor] | None = None,
    ) -> None:
        self._sizes = sizes
        self._rows = rows
        self._answer = answer
        self._ready = ready
        self._levels = 0  # that were propagated so far
        self._latest: Tensor | None = None

    def __call__(self, h: Tensor, over: Relation = None) -> Tensor:
        """P h for the nodes of the next level: (this level, width) -> (next level, width).

        over: the name of a relation, for models that have several matrices
        """
        rows, answer = self._ask(h, over)
        return answer if rows is None else spread_rows(answer, rows, self._sizes[self._levels])

    def reached(self, h: Tensor, over: str) -> tuple[Tensor, Tensor]:
        """Return `propagate(h, over)` only for the nodes that the relation reaches.

        (rows,) their places among the nodes of the next level, and (rows, width) their averages:
        less work than averages of all nodes where relations are many. To be used even if there are
        no rows: gradients go back through them.
        """
        rows, answer = self._ask(h, over)
        if rows is None:
            rows = torch.arange(answer.shape[0], device=answer.device)
        return rows, answer

    def _ask(self, h: Tensor, over: Relation) -> tuple[Tensor | None, Tensor]:
        if h is not self._latest:
            self._enter(h)
        answer = self._answer(self._levels - 1, over, h)
        return self._rows.reached(self._levels, over), answer

    def own(self, h: Tensor) -> Tensor:
        """The rows of h for the nodes that `propagate(h)` answers for, before or after that call.

        After the last level, the rows of the minibatch for any h of an earlier level.
        """
        done = self._levels == len(self._sizes) - 1
        if done or h is self._latest:
            return first_rows(h, self._sizes[self._levels])
        if h.shape[0] != self._sizes[self._levels]:
            raise RuntimeError(
                f"propagate.own was given {h.shape[0]} rows where {self._sizes[self._levels]} "
                "nodes are current; with y = propagate(h), write h[:len(y)] for the same nodes' "
                "own rows"
            )
        return first_rows(h, self._sizes[self._levels + 1])

    def beside(self, h: Tensor, over: Relation = None) -> Tensor:
        """[own(h), propagate(h)] side by side: (this level, width) -> (next level, 2 width).

        What GraphSAGE's layer takes. Of preprocessed features it needs no copy: they were gathered
        side by side.
        """
        averages = self(h, over)
        if self._ready is not None and h is self._ready[0]:
            return self._ready[1]
        return concatenate(self.own(h), averages)

    @property
    def nodes(self) -> Tensor:
        """(rows at hand,) ids of the nodes: those of x at first, after `y = propagate(h)` those of
        y."""
        return self._rows.ids(self._levels)

    @property
    def rows(self) -> int:
        """How many rows the model has at hand: one for each of `nodes`."""
        return self._sizes[self._levels]

    @property
    def level(self) -> int:
        """How many levels were propagated so far."""
        return self._levels

    @property
    def earlier(self) -> list[int]:
        """How many rows the model had at hand at each earlier level."""
        return self._sizes[: self._levels]

    def is_current(self, h: Tensor) -> bool:
        """Whether h can be propagated: it has a row for each node at hand, or was the last to be
        propagated."""
        return h is self._latest or h.shape[0] == self.rows

    def degrees(self, over: Relation = None) -> Tensor:
        """(rows at hand,): how many neighbours each of the nodes has besides itself."""
        return self._rows.degrees(self._levels, over)

    def sums(self, over: Relation = None) -> Tensor:
        """(rows at hand,): the sum of each node's row of P, its own entry included."""
        return self._rows.sums(self._levels, over)

    def table(self, table: Tensor, over: Relation = None, *, own: bool = False) -> Tensor:
        """Averages of the neighbours' rows of a table that has one for every node of the graph,
        exactly: (all nodes, width) -> (rows at hand, width).

        own: include P's diagonal, so that the result is P @ table; else leave a node's own row out

        A parameter that is given unchanged gets a sparse gradient, only for the rows that were
        read.
        """
        return self._rows.average(self._levels, table, over, own=own)

    def second_hop(self, table: Tensor, over: Relation = None) -> Tensor:
        """Averages of `table`'s averages, exactly, without the part of a node's own row that
        returns to it by its neighbours: (all nodes, width) -> (rows at hand, width).

        No gradient goes back to the table.
        """
        return self._rows.second(self._levels, table, over)

    def tables(self, table: Tensor, relations: Sequence[str]) -> list[tuple[Tensor, Tensor]]:
        """Averages of neighbours' rows of a table over several relations, exactly, for those nodes
        alone that each relation reaches: for each, (rows,) places among the nodes at hand and
        (rows, width).

        table: (nodes of one kind, width), the kind that the relations come from; a parameter that
            is given as it is gets one sparse gradient
        """
        found = self._rows.averages(self._levels, table, relations)
        places = [self._rows.reached(self._levels, over) for over in relations]
        return [(p, y) for p, y in zip(places, found, strict=True) if p is not None]

    @property
    def schema(self) -> Schema:
        """The kinds and relations of the graph."""
        return self._rows.schema

    @property
    def relations(self) -> tuple[str, ...]:
        """Names of the graph's relations; none in a graph without kinds."""
        return tuple(self._rows.schema.ends)

    def into(self, kind: str) -> tuple[str, ...]:
        """Names of the relations whose edges end in a kind of nodes."""
        ends = self._rows.schema.ends.items()
        return tuple(name for name, (_, target) in ends if target == kind)

    def of_kind(self, kind: str) -> tuple[Tensor, Tensor]:
        """(rows,) places among the nodes at hand of those of a kind, and (rows,) their numbers
        within it."""
        kinds, nodes = self._rows.schema.kinds, self.nodes
        if not kinds.named:
            raise InputError(f"the graph has no kinds of nodes, and the model asks for {kind!r}")
        own = kinds.range(kind)
        rows = ((nodes >= own.start) & (nodes < own.stop)).nonzero()[:, 0]
        return rows, nodes[rows] - own.start

    def check_finished(self) -> None:
        """Refuse a pass that ended at an earlier level than the minibatch's."""
        if self._levels + 1 != len(self._sizes):
            raise RuntimeError(
                f"the model called propagate {self._levels} times, and {len(self._sizes) - 1} when "
                "it was first looked at; it must call it the same number of times always"
            )

    def _enter(self, h: Tensor) -> None:
        """The next level begins."""
        if self._levels + 1 >= len(self._sizes):
            raise RuntimeError(
                f"the model called propagate more than the {len(self._sizes) - 1} times it did "
                "when it was first looked at; it must call it the same number of times always"
            )
        if h.shape[0] != self._sizes[self._levels]:
            raise RuntimeError(
                f"propagate call {self._levels + 1} was given {h.shape[0]} rows, and has "
                f"{self._sizes[self._levels]} nodes; each call takes all rows of what came out of "
                "the one before"
            )
        self._levels += 1
        self._latest = h
