"""The objective of values of pairs: a number or a class on each edge of a relation."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from vrgcn.engine.minibatches import MiniBatches
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.graph.graph import Graph
from vrgcn.models.relational import RelationalModel
from vrgcn.pairs.batches import NodeBatches, PairBatches
from vrgcn.pairs.heads import has_head
from vrgcn.pairs.own_edges import OwnEdges
from vrgcn.pairs.value_decoders import ValueDecoder
from vrgcn.pairs.values import (
    NUMBER_LOSSES,
    EmbeddedValues,
    ValueSource,
    score_values,
    value_metrics,
)
from vrgcn.tasks.metrics import Metric
from vrgcn.training.config import AUTO, TrainConfig
from vrgcn.training.embedding_objective import EmbeddingObjective


class ValueObjective(EmbeddingObjective):
    """Predicts a column of the pairs of a relation.

    source: has the terms of the loss, every training pair
    """

    def __init__(self, graph: Graph, config: TrainConfig) -> None:
        assert graph.pairs is not None
        assert graph.pairs.target is not None
        self.pairs, self.target = graph.pairs, graph.pairs.target
        self.usual_metric = next(iter(value_metrics(self.pairs)))
        super().__init__(graph, config)
        self.pair_batches = config.pair_batches
        self.own_edges: OwnEdges = "keep" if config.own_edges == "auto" else config.own_edges
        share = config.held_share if self.own_edges == "redraw" else 1.0
        self.source = ValueSource(self.pairs, self.loss_name, share)

    @property
    def name(self) -> str:
        """Name of the objective; a checkpoint stores it, so that another objective cannot resume
        the run."""
        return f"values of {self.pairs.relation}.{self.target.name}, {self.loss_name}"

    def find_metric(self, name: str) -> Metric:
        metrics = value_metrics(self.pairs)
        if name not in metrics:
            raise InputError(
                f"{setting('metric', name)} is no score of {self.pairs.relation}."
                f"{self.target.name}: it has {', '.join(metrics)}"
            )
        return metrics[name]

    def minibatches(self, model: nn.Module, graph: Graph, **settings: Any) -> MiniBatches:
        """The minibatches that compute the loss of values; settings: those of `MiniBatches`."""
        by_nodes = self.pair_batches == "nodes"
        if self.pair_batches == AUTO:
            relational = isinstance(getattr(model, "encoder", None), RelationalModel)
            by_nodes = has_head(model, graph) and not relational
        kind = NodeBatches if by_nodes else PairBatches
        return kind(model, graph, source=self.source, own_edges=self.own_edges, **settings)

    def prepare(self, model: nn.Module) -> None:
        super().prepare(model)
        if not isinstance(self.decoder, ValueDecoder):
            raise InputError(
                "values of pairs need a decoder of values: give a PairModel with values=0 for "
                "numbers, or the number of classes"
            )
        if not self.target.classes:
            self.decoder.set_scale(self.pairs.values["train"])

    def has_pairs(self, split: str) -> bool:
        """Whether a split has any pairs with a value."""
        return len(self.pairs.split(split)) > 0 and (self.tested or split != "test")

    def score_split(self, embeddings: Tensor, split: str) -> float:
        device = next(self.decoder.parameters(), embeddings).device
        return self.score_embeddings(embeddings.to(device), split)

    def score_embeddings(self, embeddings: Tensor, split: str) -> float:
        scorer = EmbeddedValues(self.decoder, embeddings, self.pairs.targets)
        return score_values(scorer, self.pairs, split)[self.metric_name]

    def _loss(self, name: str) -> Any:
        known = ("cross-entropy",) if self.target.classes else NUMBER_LOSSES
        if name == AUTO:
            return known[0]
        if name not in known:
            raise InputError(
                f"{setting('loss', name)} is no loss of {self.pairs.relation}.{self.target.name}: "
                f"it has {', '.join(known)}"
            )
        return name
