"""Relations: which edges all relations of a graph have."""

from __future__ import annotations

from typing import Any, cast

from torch import nn

from vrgcn.engine.minibatches import MiniBatches
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.graph.graph import Graph
from vrgcn.graph.triples import RELATIONS
from vrgcn.pairs.terms import PairLoss
from vrgcn.targets.edges import EdgeTarget
from vrgcn.targets.scored import ScoredRelations
from vrgcn.training.config import TrainConfig
from vrgcn.triples.batches import QueryBatches
from vrgcn.triples.queries import QuerySource


class Relations(EdgeTarget):
    """Separates the targets of a source in a relation from other nodes.

    source: the queries and terms of the loss
    """

    def __init__(self, edges: ScoredRelations, graph: Graph, config: TrainConfig) -> None:
        super().__init__(edges, graph, config)
        if config.own_edges == "exclude":
            raise InputError(
                f"{setting('own_edges', 'exclude')} would make the matrices of all relations anew "
                f"for each minibatch: use {setting('own_edges', 'redraw')}"
            )
        self.held_share = config.held_share if config.own_edges == "redraw" else None
        self.source = QuerySource(
            edges.triples,
            cast(PairLoss, self.loss_name),
            config.negatives,
            config.negative_sampling,
            temperature=1.0 if config.temperature is None else config.temperature,
            cube_penalty=config.cube_penalty,
        )
        self.name = f"{RELATIONS}, {self.loss_name}"

    def minibatches(self, model: nn.Module, graph: Graph, **settings: Any) -> MiniBatches:
        return QueryBatches(
            model, graph, source=self.source, held_share=self.held_share, **settings
        )
