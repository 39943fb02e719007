"""The objective of triples: which edges the relations of a graph have."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from vrgcn.engine.minibatches import MiniBatches
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.graph.graph import Graph
from vrgcn.graph.triples import RELATIONS
from vrgcn.pairs.terms import PairLoss
from vrgcn.tasks.metrics import Metric
from vrgcn.training.config import TrainConfig
from vrgcn.training.embedding_objective import EmbeddingObjective
from vrgcn.triples.batches import QueryBatches
from vrgcn.triples.queries import QuerySource
from vrgcn.triples.ranking import METRICS, EmbeddedTriples, score_triples


class TripleObjective(EmbeddingObjective):
    """Separates the targets of a source in a relation from other nodes.

    source: the queries and terms of the loss
    """

    usual_metric = "mrr"
    usual_loss: PairLoss = "softmax"

    def __init__(self, graph: Graph, config: TrainConfig) -> None:
        assert graph.triples is not None
        super().__init__(graph, config)
        self.triples = graph.triples
        if config.pair_batches == "nodes":
            raise InputError(
                f"{setting('pair_batches', 'nodes')} is of one relation: minibatches of triples "
                "are of queries; leave it out"
            )
        if config.own_edges == "exclude":
            raise InputError(
                f"{setting('own_edges', 'exclude')} would make the matrices of all relations anew "
                f"for each minibatch: use {setting('own_edges', 'redraw')}"
            )
        self.held_share = config.held_share if config.own_edges == "redraw" else None
        self.source = QuerySource(
            self.triples,
            self.loss_name,
            config.negatives,
            config.negative_sampling,
            temperature=1.0 if config.temperature is None else config.temperature,
        )

    def find_metric(self, name: str) -> Metric:
        if name not in METRICS:
            raise InputError(f"{setting('metric', name)} is none of {', '.join(METRICS)}")
        return METRICS[name]

    @property
    def name(self) -> str:
        """Name of the objective; a checkpoint stores it, so that another objective cannot resume
        the run."""
        return f"{RELATIONS}, {self.loss_name}"

    def minibatches(self, model: nn.Module, graph: Graph, **settings: Any) -> MiniBatches:
        """The minibatches that compute the loss of triples; settings: those of `MiniBatches`."""
        return QueryBatches(
            model, graph, source=self.source, held_share=self.held_share, **settings
        )

    def has_pairs(self, split: str) -> bool:
        """Whether a split has any triples that may be scored."""
        return len(self.triples.split(split)) > 0 and (self.tested or split != "test")

    def score_embeddings(self, embeddings: Tensor, split: str) -> float:
        scorer = EmbeddedTriples(self.decoder, embeddings)
        return score_triples(scorer, self.triples, split)[self.metric_name]
