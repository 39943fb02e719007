"""The objective of pairs: which of them are edges of the predicted relation."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from vrgcn.engine.minibatches import MiniBatches
from vrgcn.files.setting_names import setting
from vrgcn.graph.graph import Graph
from vrgcn.pairs.batches import NodeBatches, PairBatches
from vrgcn.pairs.decoders import Decoder
from vrgcn.pairs.model import has_head
from vrgcn.pairs.ranking import METRICS, EmbeddedPairs, collapse_note, score_pairs
from vrgcn.pairs.terms import LOSSES, PairLoss, TermSource
from vrgcn.tasks.metrics import Metric
from vrgcn.training.config import AUTO, TrainConfig

METRIC = "auc"  # the usual one


class PairObjective:
    """Separates the pairs of a relation from negatives.

    outputs: 0, an embedding of any width
    source: draws the terms of the loss
    decoder: of the model, known once it is prepared
    warning: what the last evaluation found wrong with the embeddings; None for nothing
    """

    outputs = 0
    visit = "all"
    centre = 0.0

    def __init__(self, graph: Graph, config: TrainConfig) -> None:
        assert graph.pairs is not None
        self.pairs = graph.pairs
        for name, unused in (("class_weights", "none"), ("label_smoothing", 0.0)):
            if getattr(config, name) != unused:
                raise ValueError(
                    f"{setting(name, getattr(config, name))} means nothing for pairs: leave it out"
                )
        self.loss_name = _loss(config.loss)
        self.pair_batches = config.pair_batches
        self.source = TermSource(
            self.pairs, self.loss_name, config.negatives, config.negative_sampling
        )
        self.trained = torch.ones(graph.num_nodes, dtype=torch.bool)
        self.metric_name = METRIC if config.metric is None else config.metric
        self.metric: Metric = _metric(self.metric_name)
        self.decoder: Decoder
        self.warning: str | None = None

    @property
    def name(self) -> str:
        """Name of the objective; a checkpoint stores it, so that another objective cannot resume
        the run."""
        return f"pairs of {self.pairs.relation}, {self.loss_name}"

    def minibatches(self, model: nn.Module, graph: Graph, **settings: Any) -> MiniBatches:
        """The minibatches that compute the loss of pairs; settings: those of `MiniBatches`."""
        by_nodes = self.pair_batches == "nodes"
        if self.pair_batches == AUTO:
            by_nodes = has_head(model)
        kind = NodeBatches if by_nodes else PairBatches
        return kind(model, graph, source=self.source, **settings)

    def prepare(self, model: nn.Module) -> None:
        decoder = getattr(model, "decoder", None)
        if not isinstance(decoder, Decoder):
            raise ValueError(
                "pairs are scored by the decoder of a model: give a PairModel, whose `decoder` is "
                "one of vrgcn.pairs.decoders"
            )
        self.decoder = decoder

    def check_outputs(self, outputs: Tensor) -> None:
        if outputs.dim() != 2:
            raise ValueError(
                f"the model's output has shape {tuple(outputs.shape)}: an embedding of each node "
                "must be (nodes, width)"
            )

    def loss(self, outputs: Tensor, nodes: Tensor) -> Tensor:
        raise TypeError("the loss of pairs needs the terms of a minibatch: batch.losses(...)")

    def has_pairs(self, split: str) -> bool:
        """Whether a split has any pairs."""
        return len(self.pairs.split(split)) > 0

    def score_split(self, embeddings: Tensor, split: str) -> float:
        """The metric of a split's pairs, from the embeddings of all nodes (nodes, width)."""
        device = next(self.decoder.parameters(), embeddings).device
        z = embeddings.to(device)
        self.warning = collapse_note(z)
        scorer = EmbeddedPairs(self.decoder, z, self.pairs.targets)
        return score_pairs(scorer, self.pairs, split, (self.metric_name,))[self.metric_name]

    def score(self, outputs: Tensor, nodes: Tensor) -> float:
        raise TypeError("pairs are scored by split: score_split")

    def better(self, score: float, other: float) -> bool:
        return self.metric.better(score, other)


def _loss(name: str) -> PairLoss:
    """The loss of a setting; auto: logistic."""
    found = next((known for known in LOSSES if known == name), None)
    if found is None and name != AUTO:
        raise ValueError(
            f"{setting('loss', name)} is of single nodes: pairs have {', '.join(LOSSES)}"
        )
    return found or "logistic"


def _metric(name: str) -> Metric:
    if name not in METRICS:
        raise ValueError(f"{setting('metric', name)} is none of {', '.join(METRICS)}")
    return METRICS[name]
