"""Values: a number or a class on each edge of a relation."""

from __future__ import annotations

from typing import Any

from torch import nn

from vrgcn.engine.minibatches import MiniBatches
from vrgcn.files.mistakes import InputError
from vrgcn.graph.graph import Graph
from vrgcn.pairs.batches import NodeBatches, PairBatches
from vrgcn.pairs.own_edges import OwnEdges
from vrgcn.pairs.value_decoders import ValueDecoder
from vrgcn.pairs.values import ValueSource
from vrgcn.targets.edges import EdgeTarget
from vrgcn.targets.scored import ScoredValues
from vrgcn.training.config import TrainConfig


class Values(EdgeTarget):
    """Predicts a column of the pairs of a relation.

    source: has the terms of the loss, every training pair
    """

    def __init__(self, edges: ScoredValues, graph: Graph, config: TrainConfig) -> None:
        super().__init__(edges, graph, config)
        self.pairs = edges.pairs
        self.own_edges: OwnEdges = "keep" if config.own_edges == "auto" else config.own_edges
        share = config.held_share if self.own_edges == "redraw" else 1.0
        self.source = ValueSource(self.pairs, self.loss_name, share)
        self.name = f"values of {edges.predict}, {self.loss_name}"

    def minibatches(self, model: nn.Module, graph: Graph, **settings: Any) -> MiniBatches:
        kind = NodeBatches if self.by_nodes(model, graph) else PairBatches
        return kind(model, graph, source=self.source, own_edges=self.own_edges, **settings)

    def prepare(self, model: nn.Module) -> None:
        super().prepare(model)
        if not isinstance(self.decoder, ValueDecoder):
            raise InputError(
                "values of pairs need a decoder of values: give a PairModel with values=0 for "
                "numbers, or the number of classes"
            )
        if self.loss_name != "cross-entropy":
            self.decoder.set_scale(self.pairs.values["train"])
