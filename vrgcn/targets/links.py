"""Links: which nodes are linked by one relation."""

from __future__ import annotations

from typing import Any, cast

from torch import nn

from vrgcn.engine.minibatches import MiniBatches
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.graph.graph import Graph
from vrgcn.models.lightgcn import LightGCN
from vrgcn.models.node_table import node_tables
from vrgcn.pairs.batches import NodeBatches, PairBatches
from vrgcn.pairs.decoders import Cosine
from vrgcn.pairs.own_edges import OwnEdges, own_edges_rule
from vrgcn.pairs.prior import log_counts, negative_weights, usual_temperature
from vrgcn.pairs.terms import PairLoss, TermSource
from vrgcn.targets.edges import EdgeTarget
from vrgcn.targets.scored import ScoredLinks
from vrgcn.training.config import TrainConfig

_COSINE = 0.1  # the usual temperature of cosines
_SCORED = 8  # pairs of embeddings that take as long to score as one node to compute
_PRODUCTS = 300  # the same for entries of a matrix product with shared negatives


_NEGATIVES: dict[str, tuple[str, ...]] = {
    "train": (),
    "all": (
        "negatives of training avoid the pairs of all splits, which tells training a little of "
        "what is held out",
    ),
}


class Links(EdgeTarget):
    """Separates the pairs of a relation from negatives.

    source: draws the terms of the loss
    """

    def __init__(self, edges: ScoredLinks, graph: Graph, config: TrainConfig) -> None:
        super().__init__(edges, graph, config)
        self.pairs = edges.pairs
        self.batch_size = config.batch_size
        self._wanted, self._share, self._avoid = (
            config.own_edges,
            config.held_share,
            config.negatives_avoid,
        )
        self.source = TermSource(
            self.pairs,
            cast(PairLoss, self.loss_name),
            config.negatives,
            config.negative_sampling,
            avoid=self._avoid,
        )
        self.temperature = config.temperature
        self.name = f"pairs of {self.pairs.relation}, {self.loss_name}"

    def minibatches(self, model: nn.Module, graph: Graph, **settings: Any) -> MiniBatches:
        kind = NodeBatches if self.by_nodes(model, graph) else PairBatches
        rule = self._own_edges(model, graph)
        self.source.score(self._share if rule == "redraw" else 1.0)
        return kind(model, graph, source=self.source, own_edges=rule, **settings)

    def rules(self, model: nn.Module, graph: Graph) -> tuple[str, ...]:
        own = own_edges_rule(self._own_edges(model, graph), self._share)
        return own, *_NEGATIVES[self._avoid]

    def _own_edges(self, model: nn.Module, graph: Graph) -> OwnEdges:
        """The rule about own edges. auto: learned rows of nodes of one kind learn to look for them
        (docs/results/links.md)."""
        if self._wanted != "auto":
            return self._wanted
        rows = any(table.input for table in node_tables(model).values())
        if not rows or any(self.pairs.kinds):
            return "keep"
        return "redraw" if self.by_nodes(model, graph) else "exclude"

    def prepare(self, model: nn.Module) -> None:
        super().prepare(model)
        usual = _COSINE if isinstance(self.decoder, Cosine) else 1.0
        if self.decoder.has_prior:
            usual = usual_temperature(self.pairs)
        self.source.temperature = usual if self.temperature is None else self.temperature
        if self.decoder.has_prior:
            self._set_prior(model)

    def _set_prior(self, model: nn.Module) -> None:
        """Give the model the prior of each node, and negatives weights that agree with it."""
        if self.loss_name != "softmax" or not self.source.shared:
            raise InputError(
                f"{setting('decoder', 'lift')} learns by {setting('loss', 'softmax')} with "
                f"{setting('negative_sampling', 'shared')}: give both"
            )
        encoder = getattr(model, "encoder", None)
        assert isinstance(encoder, LightGCN)
        assert encoder.prior is not None
        logs = log_counts(self.pairs, len(encoder.prior.rows))
        self.source.weights = negative_weights(logs, self.pairs.targets)
        encoder.prior.rows.copy_(self.source.temperature * logs[:, None])

    def scoring_work(self, steps: int) -> float:
        source, by_nodes = self.source, self.pair_batches == "nodes"
        ends = source.count * (
            2 if by_nodes else 1
        )  # a minibatch of nodes scores pairs of each end
        if not source.shared:
            return ends / _SCORED
        sources = len(self.pairs.sources)
        asked = sources if by_nodes else min(sources, self.batch_size) * steps
        return ends / _SCORED + asked * source.negatives / _PRODUCTS
