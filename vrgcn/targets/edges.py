"""Predicted edges as training sees them: a model embeds nodes, a decoder scores their pairs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from vrgcn.engine.batch import Batch
from vrgcn.engine.minibatches import MiniBatches
from vrgcn.files.mistakes import InputError
from vrgcn.files.settings import AUTO
from vrgcn.graph.graph import Graph
from vrgcn.models.relational import RelationalModel
from vrgcn.pairs.decoders import Decoder
from vrgcn.pairs.heads import has_head
from vrgcn.targets.scored import ScoredEdges
from vrgcn.tasks.metrics import Metric
from vrgcn.training.config import TrainConfig


class EdgeTarget:
    """A target of edges; what differs between links, values and relations is their loss.

    edges: the predicted ones, as they are scored
    outputs: 0, an embedding of any width
    tested: False if test edges are not to be scored, as in the trials of a search; they are never
        negatives all the same
    decoder: of the model, known once it is prepared
    """

    outputs = 0
    visit: Any = "all"
    centre = 0.0
    metric: Metric
    name: str

    def __init__(self, edges: ScoredEdges, graph: Graph, config: TrainConfig) -> None:
        self.edges = edges
        self.pair_batches = config.pair_batches
        self.loss_name = edges.find_loss(config.loss)
        self.trained = torch.ones(graph.num_nodes, dtype=torch.bool)
        self.metric_name = edges.usual_metric if config.metric is None else config.metric
        self.metric = edges.find_metric(self.metric_name)
        self.decoder: Decoder
        self.warning: str | None = None
        self.tested = True

    def by_nodes(self, model: nn.Module, graph: Graph) -> bool:
        """Whether minibatches are of nodes; by default, unless the model is relational."""
        if self.pair_batches != AUTO:
            return self.pair_batches == "nodes"
        relational = isinstance(getattr(model, "encoder", None), RelationalModel)
        return has_head(model, graph) and not relational

    @abstractmethod
    def minibatches(self, model: nn.Module, graph: Graph, **settings: Any) -> MiniBatches:
        """Return the minibatches that compute the loss; settings: those of `MiniBatches`."""

    def prepare(self, model: nn.Module) -> None:
        self.decoder = _decoder_of(model)

    def check_outputs(self, outputs: Tensor) -> None:
        if outputs.dim() != 2:
            raise InputError(
                f"the model's output has shape {tuple(outputs.shape)}: an embedding of each node "
                "must be (nodes, width)"
            )

    def losses(self, batch: Batch, outputs: Tensor) -> Tensor:
        return batch.losses(self, outputs)

    def has(self, split: str) -> bool:
        return len(self.edges.predicted.split(split)) > 0 and (self.tested or split != "test")

    def nodes(self, split: str) -> Tensor | None:
        return None

    def score_split(self, model: nn.Module, outputs: Tensor, split: str) -> float:
        decoder = _decoder_of(model)
        z = outputs.to(next(decoder.parameters(), outputs).device)
        self.warning = self.edges.note(decoder, z)
        return self._score(self.edges.scorer(decoder, z), split)

    def better(self, score: float, other: float) -> bool:
        return self.metric.better(score, other)

    def rules(self, model: nn.Module, graph: Graph) -> tuple[str, ...]:
        return ()

    def simple_scores(
        self, splits: Sequence[str], width: int
    ) -> Iterator[tuple[str, Mapping[str, float]]]:
        for title, rule in self.edges.simple(width).items():
            yield title, {split: self._score(rule, split) for split in splits if self.has(split)}

    def scoring_work(self, steps: int) -> float:
        return 0.0

    def _score(self, scorer: Any, split: str) -> float:
        return self.edges.scores(scorer, split, (self.metric_name,))[self.metric_name]


def _decoder_of(model: nn.Module) -> Decoder:
    decoder = getattr(model, "decoder", None)
    if not isinstance(decoder, Decoder):
        raise InputError(
            "pairs are scored by the decoder of a model: give a PairModel, whose `decoder` is one "
            "of vrgcn.pairs.decoders"
        )
    return decoder
