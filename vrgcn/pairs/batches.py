"""Minibatches for the loss of pairs, made in two ways.

    pairs   A minibatch is some of the epoch's terms; the nodes in their slots are computed, all
            with gradients. The reference. Estimators with histories of gradients are refused:
            their tables assume that every node is visited equally often.
    nodes   A minibatch is some nodes, each visited once in an epoch. The terms with one of them in
            a slot are scored; nodes in the other slots are read from a table, without gradients.
            In an epoch every slot of every term is computed once, so the one-sided gradients add
            up to the full gradient. The decoder's own parameters learn from the minibatch that has
            a term's source, so that each term counts once for them too.

The table of the second way holds the last values that the layers after the last `propagate` took
in, P h for GCN. The present layers are applied when it is read: a table of embeddings would be as
old as its weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from vrgcn.engine.batch import Batch, Position
from vrgcn.engine.estimators import Estimator
from vrgcn.engine.history import History, exact_tables
from vrgcn.engine.minibatches import MiniBatches
from vrgcn.engine.plan import Plan
from vrgcn.engine.sweeps import fill_tables, sweep
from vrgcn.engine.visits import sizes
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.graph.graph import Graph
from vrgcn.pairs.decoders import Decoder, detached
from vrgcn.pairs.heads import Head, Watched, head_of, read_partners
from vrgcn.pairs.own_edges import MessageEdges, OwnEdges
from vrgcn.pairs.shared import SharedNegatives
from vrgcn.pairs.terms import Terms, TermSource

PARTNERS, PRESSURES = "p", "q"  # the kinds of their tables among the histories
_ORDER, _PLAN, _TERMS, _PRESSURES = 0, 1, 3, 4  # purposes of random numbers; 2 refreshes histories
_ROWS = 8192  # rows of a table that are embedded at a time


class _TermBatches(MiniBatches):
    """Minibatches of all nodes with the terms of each epoch."""

    def __init__(
        self,
        model: nn.Module,
        graph: Graph,
        *,
        source: TermSource,
        own_edges: OwnEdges = "keep",
        **settings: Any,
    ) -> None:
        self.source = source
        self._drawn: tuple[int, Terms] | None = None
        self.own_edges = own_edges
        super().__init__(model, graph, **settings)
        self._edges = MessageEdges(self.setup, source.pairs)

    @property
    def counted(self) -> int:
        return self.source.count

    @property
    def terms(self) -> Terms:
        """The terms of the present epoch: they depend only on the seed and its number."""
        epoch = self.position.epoch
        if self._drawn is None or self._drawn[0] != epoch:
            generator = self._generator(epoch, _TERMS)
            chosen = self.source.chosen(generator)
            self._drawn = epoch, self.source.draw(generator, chosen)
            if self.own_edges == "redraw":
                self.use_edges(self._edges.without(self.source.train[chosen]))
        return self._drawn[1]


def check_any_order(batches: MiniBatches) -> None:
    """Raise if minibatches that have no order of nodes shall be made of blocks of them."""
    if batches.run > 1:
        raise InputError(
            f"{setting('batches', 'blocks')} is for minibatches of nodes, and these are of pairs: "
            "leave it out"
        )


class PairBatches(_TermBatches):
    """Minibatches of terms; batch_size counts terms."""

    def __init__(self, model: nn.Module, graph: Graph, **settings: Any) -> None:
        super().__init__(model, graph, **settings)
        check_any_order(self)
        self._check_estimator()

    def sibling(self, estimator: str | Estimator) -> MiniBatches:
        other = super().sibling(estimator)
        assert isinstance(other, PairBatches)
        other._check_estimator()
        return other

    def _check_estimator(self) -> None:
        if self.estimator.gradient_history:
            raise InputError(
                "minibatches of pairs do not visit every node equally often, as histories of "
                f"gradients assume: use minibatches of nodes ({setting('pair_batches', 'nodes')}), "
                "or the estimator exact, ns or cvd"
            )

    def __len__(self) -> int:
        return len(sizes(self.source.count, self.batch_size))

    def epoch_of(self, plans: Sequence[Plan]) -> float:
        return len(self) / len(plans)

    def rest_of_epoch(self) -> Iterator[Batch]:
        epoch, start = self.position.epoch, self.position.place
        order = torch.randperm(len(self.terms), generator=self._generator(epoch, _ORDER))
        parts = order.split(sizes(len(self.terms), self.batch_size))
        for place, part in enumerate(parts[start:], start=start):
            self.position = Position(epoch, place + 1, self.position.step)
            yield self._of(self.terms.take(part), self._generator(epoch, _PLAN, place))

    def batch(self, nodes: Tensor, generator: torch.Generator | None = None) -> Batch:
        """A minibatch of as many random terms as there are nodes: minibatches of chosen nodes do
        not exist here."""
        generator = generator or self.generator
        places = torch.randint(len(self.terms), (len(nodes),), generator=generator)
        return self._of(self.terms.take(places), generator)

    def _of(self, terms: Terms, generator: torch.Generator) -> Batch:
        if self.own_edges == "exclude":
            self.use_edges(self._edges.without(terms.nodes[:, :2]))
        shared = None
        nodes = terms.nodes.flatten()
        if self.source.shared:
            shared = self.source.sharing(
                self.source.sampler.shared(self.source.negatives, generator)
            )
            nodes = torch.cat([nodes, shared.nodes])
        return PairBatch(self, self.planner.plan(nodes.unique(), generator), terms, shared)


class PairBatch(Batch):
    """A minibatch of terms, all of whose nodes are computed.

    shared: the negatives of all of them; None if each has its own
    """

    def __init__(
        self, source: PairBatches, plan: Plan, terms: Terms, shared: SharedNegatives | None = None
    ) -> None:
        super().__init__(source, plan)
        self.terms = terms
        self.shared = shared
        self._terms = source.source

    def losses(self, objective: Any, outputs: Tensor) -> Tensor:
        slots, decoder = self._places(self.terms.nodes, outputs), objective.decoder.compared
        if self.shared is None:
            z = outputs[slots]
            scores: Tensor = decoder(z[:, :1], z[:, 1:])
            return self._terms.losses(self.terms, scores)
        sources, place = self.terms.nodes[:, 0].unique(return_inverse=True)
        own, others = (outputs[self._places(n, outputs)] for n in (sources, self.shared.nodes))
        pressure = self.shared.pressure(decoder, sources, own, others)
        scores = decoder(outputs[slots[:, 0]], outputs[slots[:, 1]])
        return self.shared.losses(scores, pressure[place.to(pressure.device)])

    def _places(self, nodes: Tensor, outputs: Tensor) -> Tensor:
        """Rows of the outputs that nodes have."""
        return torch.searchsorted(self.nodes, nodes).to(outputs.device)

    def mean(self, losses: Tensor) -> Tensor:
        return losses.mean()


class NodeBatches(_TermBatches):
    """Minibatches of nodes whose partners are read from a table."""

    def __init__(self, model: nn.Module, graph: Graph, **settings: Any) -> None:
        super().__init__(model, graph, **settings)
        if self.own_edges == "exclude":
            raise InputError(
                "a minibatch of nodes scores all pairs of its nodes, which would have no messages "
                f"at all: use {setting('own_edges', 'redraw')}, or minibatches of pairs "
                f"({setting('pair_batches', 'pairs')})"
            )
        head_of(model, graph)
        self._places = torch.full((graph.num_nodes,), -1)

    def rest_of_epoch(self) -> Iterator[Batch]:
        _ = self.terms  # they decide which edges carry messages in this epoch
        return super().rest_of_epoch()

    def make(self, plan: Plan, *, backward: bool = True) -> Batch:
        return NodeBatch(self, plan, self.terms, backward=backward)

    def head(self, model: nn.Module) -> Head:
        """The layers that are applied to the table when it is read."""
        return head_of(model, self.graph)

    def partners(self, model: nn.Module) -> History:
        """The table of partners; at first it is filled by an exact pass."""
        level = self.setup.training.depth
        if (level, PARTNERS) not in self.histories.tables:
            self._fill(model, level)
        return self.histories.tables[level, PARTNERS]

    def _fill(self, model: nn.Module, level: int) -> None:
        setup, graph = self.setup, self.graph
        nodes = torch.arange(graph.num_nodes)
        exact = exact_tables(graph.num_nodes, graph.dtype, setup.device)
        levels = setup.evaluation.depth - setup.evaluation.first_table
        fill_tables(model, setup, [nodes] * levels, exact)
        with Watched(self.head(model)) as seen:
            for swept in sweep(model, setup, nodes, exact):
                table = self.histories.table(level, seen.value.shape[1], PARTNERS)
                table.write(swept.nodes.to(seen.value.device), seen.value, self.step)

    def pressures(self, model: nn.Module, decoder: Decoder) -> History:
        """The table of what shared negatives were for each source when it was last visited; at
        first with negatives that are drawn once."""
        if (0, PRESSURES) in self.histories.tables:
            return self.histories.tables[0, PRESSURES]
        found, source = self.histories.table(0, 1, PRESSURES), self.source
        drawn = source.sampler.shared(source.negatives, self._generator(0, _PRESSURES))
        negatives, head = self.embedded(model, drawn), source.pairs.sources
        for nodes in torch.arange(head.start, head.stop).split(_ROWS):
            z = self.embedded(model, nodes)
            rows = source.sharing(drawn).fixed_pressure(decoder, nodes, z, negatives)
            found.write(nodes, rows[:, None], self.step)
        return found

    def embedded(self, model: nn.Module, nodes: Tensor) -> Tensor:
        """(nodes, width) embeddings of partners: the present layers on what the table holds."""
        nodes = nodes.to(self.setup.device)
        rows = self.partners(model).read(nodes, self.graph.dtype)
        return read_partners(self.head(model), rows, nodes, training=model.training)

    def sources_among(self, nodes: Tensor) -> Tensor:
        """Places of the nodes that may be sources."""
        sources = self.source.pairs.sources
        return ((nodes >= sources.start) & (nodes < sources.stop)).nonzero()[:, 0]

    def negatives_among(self, nodes: Tensor) -> Tensor:
        """Nodes of a minibatch that may be partners, at most as many as negatives are shared."""
        targets = self.source.pairs.targets
        found = nodes[(nodes >= targets.start) & (nodes < targets.stop)]
        return found[: self.source.negatives].sort().values

    def places_among(self, nodes: Tensor, some: Tensor) -> Tensor:
        """The places of some of the nodes among them."""
        places = self._places
        places[nodes] = torch.arange(len(nodes))
        found = places[some]
        places[nodes] = -1
        return found

    def placed(self, nodes: Tensor, terms: Terms) -> tuple[Tensor, Tensor]:
        """Partners of the terms that are not among the nodes, and the place of each slot among the
        nodes and these together."""
        places = self._places
        places[nodes] = torch.arange(len(nodes))
        flat = terms.nodes.reshape(-1)
        others = flat[places[flat] < 0].unique()
        places[others] = torch.arange(len(nodes), len(nodes) + len(others))
        slots = places[terms.nodes]
        places[nodes] = -1
        places[others] = -1
        return others, slots


class NodeBatch(Batch):
    """A minibatch of nodes, with the terms that have one of them in a slot."""

    def __init__(
        self, source: NodeBatches, plan: Plan, terms: Terms, *, backward: bool = True
    ) -> None:
        super().__init__(source, plan, backward=backward)
        self._nodes = source
        self._epoch = terms
        self._model: nn.Module | None = None
        self._seen: Tensor | None = None
        self._pressure: tuple[Tensor, Tensor] | None = None

    def run(self, model: nn.Module) -> Tensor:
        self._nodes.partners(model)
        with Watched(self._nodes.head(model)) as seen:
            outputs = super().run(model)
        self._model, self._seen = model, seen.value.detach()
        return outputs

    def losses(self, objective: Any, outputs: Tensor) -> Tensor:
        assert self._model is not None
        touched = self._epoch.touching(self.nodes)
        terms = self._epoch.take(touched)
        others, slots = self._nodes.placed(self.nodes, terms)
        if self._nodes.source.shared:
            return self._shared_losses(objective.decoder.compared, outputs, terms, others, slots)
        own = slots[:, 0] < len(self.nodes)  # the decoder learns from these
        order = torch.argsort(own.int(), descending=True, stable=True)
        terms, slots, self._own = terms.take(order), slots[order], int(own.sum())
        z = torch.cat([outputs, self._nodes.embedded(self._model, others)])[
            slots.to(outputs.device)
        ]
        scores = _scores(objective.decoder, z, self._own)
        return self._nodes.source.losses(terms, scores)

    def _shared_losses(
        self, decoder: Decoder, outputs: Tensor, terms: Terms, others: Tensor, slots: Tensor
    ) -> Tensor:
        """The losses of pairs whose source is in the minibatch, then of those whose partner is.

        The first have gradients of sources and negatives, the second of partners: each once in an
        epoch. What the negatives are for sources outside the minibatch is read from a table, as it
        was when they were visited.
        """
        batches, count = self._nodes, len(self.nodes)
        shared = batches.source.sharing(batches.negatives_among(self.nodes))
        inside = batches.places_among(self.nodes, shared.nodes).to(outputs.device)
        mine = batches.sources_among(self.nodes)
        assert self._model is not None
        pressure = shared.pressure(decoder, self.nodes[mine], outputs[mine], outputs[inside])
        self._pressure = self.nodes[mine], pressure.detach()[:, None]

        fixed = torch.cat([outputs.detach(), self._nodes.embedded(self._model, others)])
        ids = torch.cat([self.nodes, others])
        by_source, by_partner = (slots[slots[:, k] < count] for k in (0, 1))
        place = batches.places_among(self.nodes[mine], ids[by_source[:, 0]]).to(outputs.device)
        scores = decoder.pairwise(outputs, fixed, *by_source.unbind(1))
        first = shared.losses(scores, pressure[place])

        known = batches.pressures(self._model, decoder).read(ids.to(outputs.device), outputs.dtype)
        known[mine] = self._pressure[1]
        scores = _fixed_pairwise(decoder, fixed, outputs, *by_partner.unbind(1))
        self._own = len(first)
        return torch.cat([first, shared.losses(scores, known[by_partner[:, 0], 0])])

    def counted(self, losses: Tensor) -> Tensor:
        return losses[: self._own].sum()

    def mean(self, losses: Tensor) -> Tensor:
        source = self._nodes
        return losses.sum() * (len(source.visits.backward) / (source.source.count * self.size))

    def commit(self) -> None:
        if self._seen is not None and self._model is not None:
            table = self._nodes.partners(self._model)
            table.write(self.nodes, self._seen, self._nodes.step)
            if self._pressure is not None:
                self._nodes.histories.table(0, 1, PRESSURES).write(
                    *self._pressure, self._nodes.step
                )
        self._seen = self._pressure = None
        super().commit()


def _fixed_pairwise(decoder: Decoder, *arguments: Tensor) -> Tensor:
    """`decoder.pairwise` without gradients of its parameters."""
    parameters = [p for p in decoder.parameters() if p.requires_grad]
    for parameter in parameters:
        parameter.requires_grad_(False)
    try:
        return decoder.pairwise(*arguments)
    finally:
        for parameter in parameters:
            parameter.requires_grad_(True)


def _scores(decoder: Decoder, z: Tensor, own: int) -> Tensor:
    """(terms, slots - 1) scores; the decoder's parameters get gradients of the first `own` terms.

    z: (terms, slots, width)
    """
    numbers = detached(decoder)
    if not numbers or own == len(z):
        scores: Tensor = decoder(z[:, :1], z[:, 1:])
        return scores
    rest: Tensor = functional_call(decoder, numbers, (z[own:, :1], z[own:, 1:]))
    return torch.cat([decoder(z[:own, :1], z[:own, 1:]), rest])
