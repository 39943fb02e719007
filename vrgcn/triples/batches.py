"""Minibatches of queries for the loss of triples.

A minibatch is some queries. Their sources, true targets and candidates are computed, all with
gradients. Estimators with histories of gradients are refused: their tables assume that every node
is visited equally often, and there would be one for each level and relation.

Own edges (see pairs/own_edges.py) are kept, or redrawn: an epoch then has a new share of the
queries, and the triples of these carry no messages in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from vrgcn.engine.batch import Batch, Position
from vrgcn.engine.minibatches import MiniBatches
from vrgcn.engine.plan import Plan
from vrgcn.engine.visits import sizes
from vrgcn.files.mistakes import InputError
from vrgcn.graph.graph import Graph
from vrgcn.pairs.batches import check_any_order
from vrgcn.pairs.own_edges import MessageEdges
from vrgcn.triples.queries import Asked, QuerySource

_ORDER, _PLAN, _CANDIDATES = 0, 1, 3  # purposes of random numbers; 2 refreshes histories


class QueryBatches(MiniBatches):
    """Minibatches of queries; batch_size counts queries."""

    def __init__(
        self,
        model: nn.Module,
        graph: Graph,
        *,
        source: QuerySource,
        held_share: float | None = None,
        **settings: Any,
    ) -> None:
        self.source = source
        every = source.queries
        self.queries = every if held_share is None else max(round(held_share * every), 1)
        self._scored = 1.0  # expected terms of an epoch for each that the present one has
        self._present = 0  # the epoch whose edges carry messages
        super().__init__(model, graph, **settings)
        check_any_order(self)
        self._edges = None if held_share is None else MessageEdges(self.setup, source.triples)
        if self.estimator.gradient_history:
            raise InputError(
                "minibatches of triples do not visit every node equally often, as histories of "
                "gradients assume: use the estimator exact, ns, cv or cvd"
            )

    @property
    def counted(self) -> int:
        return max(round(self.source.terms * self.queries / self.source.queries), 1)

    @property
    def scored(self) -> float:
        """Terms that an epoch has on average, for each that the present one has: 1 where every
        epoch has all."""
        return self._scored

    def __len__(self) -> int:
        return len(sizes(self.queries, self.batch_size))

    def epoch_of(self, plans: Sequence[Plan]) -> float:
        return len(self) / len(plans)

    def rest_of_epoch(self) -> Iterator[Batch]:
        epoch, start = self.position.epoch, self.position.place
        every = torch.randperm(self.source.queries, generator=self._generator(epoch, _ORDER))
        order = every[: self.queries]
        self._hold_out(order)
        parts = order.split(sizes(self.queries, self.batch_size))
        for place, part in enumerate(parts[start:], start=start):
            self.position = Position(epoch, place + 1, self.position.step)
            asked = self.source.ask(part, self._generator(epoch, _CANDIDATES, place))
            yield self._of(asked, self._generator(epoch, _PLAN, place))

    def _hold_out(self, places: Tensor) -> None:
        """Take the triples of an epoch's queries out of the messages, where they are redrawn."""
        if self._edges is None or self._present == self.position.epoch:
            return
        held = self.source.triples_of(places)
        self.use_edges(self._edges.without(held))
        self._scored = self.counted / len(held)
        self._present = self.position.epoch

    def batch(self, nodes: Tensor, generator: torch.Generator | None = None) -> Batch:
        """A minibatch of as many random queries as there are nodes: minibatches of chosen nodes do
        not exist here."""
        generator = generator or self.generator
        places = torch.randint(self.source.queries, (len(nodes),), generator=generator)
        return self._of(self.source.ask(places, generator), generator)

    def _of(self, asked: Asked, generator: torch.Generator) -> Batch:
        return QueryBatch(self, self.planner.plan(asked.nodes, generator), asked)


class QueryBatch(Batch):
    """A minibatch of queries, all of whose nodes are computed."""

    def __init__(self, source: QueryBatches, plan: Plan, asked: Asked) -> None:
        super().__init__(source, plan)
        self.asked = asked
        self._queries = source.source
        self._batches = source

    def losses(self, objective: Any, outputs: Tensor) -> Tensor:
        asked, decoder = self.asked, objective.decoder
        z = [outputs[self._places(part)] for part in (asked.sources, asked.targets)]
        query = decoder.query(z[0], asked.directions.to(outputs.device))
        true = decoder(query[asked.rows.to(outputs.device)], z[1])
        scores = decoder.against(query, outputs[self._places(asked.candidates)])
        losses = self._queries.losses(asked, true, scores)
        weight = self._queries.cube_penalty
        if not weight:
            return losses
        rows = asked.rows.to(outputs.device)
        cubes = decoder.cubes(z[0])[rows] + decoder.cubes(z[1])
        if isinstance(decoder.weight, Tensor):
            of_relations = decoder.cubes(decoder.weight)
            cubes = cubes + of_relations[asked.directions.to(outputs.device)][rows]
        return losses + weight * cubes

    def counted(self, losses: Tensor) -> Tensor:
        return losses.sum() * self._batches.scored

    def mean(self, losses: Tensor) -> Tensor:
        """The mean over the terms of an epoch, if all of its queries were like these."""
        source = self._queries
        return losses.sum() * (source.queries / (source.terms * len(self.asked)))

    def _places(self, nodes: Tensor) -> Tensor:
        return torch.searchsorted(self.nodes, nodes)
