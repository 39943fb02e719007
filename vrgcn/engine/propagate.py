"""The `propagate` that a model is given in place of the textbook's P @ h."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from vrgcn.engine.node_rows import NodeRows
from vrgcn.engine.plan import Relation
from vrgcn.graph.sparse import concatenate, first_rows

# From a level, a relation and the activations of the level to (estimated) averages for the next.
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
        if h is not self._latest:
            self._enter(h)
        return self._answer(self._levels - 1, over, h)

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

    def degrees(self, over: Relation = None) -> Tensor:
        """(rows at hand,): how many neighbours each of the nodes has besides itself."""
        return self._rows.degrees(self._levels, over)

    def table(self, table: Tensor, over: Relation = None) -> Tensor:
        """Averages of the neighbours' rows of a table that has one for every node of the graph,
        exactly: (all nodes, width) -> (rows at hand, width).

        A node's own row has no part in it. A parameter that is given as it is gets a sparse
        gradient, of the neighbours' rows alone.
        """
        return self._rows.average(self._levels, table, over)

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
