"""The base of objectives whose model embeds nodes and scores pairs of embeddings by a decoder."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.graph.graph import Graph
from vrgcn.pairs.decoders import Decoder
from vrgcn.pairs.ranking import collapse_note
from vrgcn.pairs.terms import LOSSES, PairLoss
from vrgcn.tasks.metrics import Metric
from vrgcn.training.config import AUTO, TrainConfig


class EmbeddingObjective:
    """What objectives of pairs and of triples share.

    usual_metric, usual_loss: taken where the config names none
    outputs: 0, an embedding of any width
    tested: False if test pairs are not to be scored, as in the trials of a search; they are never
        negatives all the same
    decoder: of the model, known once it is prepared
    warning: what the last evaluation found wrong with the embeddings; None for nothing
    """

    usual_metric: str
    usual_loss: PairLoss
    outputs = 0
    visit = "all"
    centre = 0.0

    def __init__(self, graph: Graph, config: TrainConfig) -> None:
        for name, unused in (("class_weights", "none"), ("label_smoothing", 0.0)):
            if getattr(config, name) != unused:
                raise InputError(
                    f"{setting(name, getattr(config, name))} means nothing for pairs: leave it out"
                )
        self.loss_name = self._loss(config.loss)
        self.trained = torch.ones(graph.num_nodes, dtype=torch.bool)
        self.metric_name = self.usual_metric if config.metric is None else config.metric
        self.metric = self.find_metric(self.metric_name)
        self.decoder: Decoder
        self.warning: str | None = None
        self.tested = True

    def find_metric(self, name: str) -> Metric:
        """The score with a name."""
        raise NotImplementedError

    def prepare(self, model: nn.Module) -> None:
        decoder = getattr(model, "decoder", None)
        if not isinstance(decoder, Decoder):
            raise InputError(
                "pairs are scored by the decoder of a model: give a PairModel, whose `decoder` is "
                "one of vrgcn.pairs.decoders"
            )
        self.decoder = decoder

    def check_outputs(self, outputs: Tensor) -> None:
        if outputs.dim() != 2:
            raise InputError(
                f"the model's output has shape {tuple(outputs.shape)}: an embedding of each node "
                "must be (nodes, width)"
            )

    def loss(self, outputs: Tensor, nodes: Tensor) -> Tensor:
        raise TypeError("the loss of pairs needs the terms of a minibatch: batch.losses(...)")

    def has_pairs(self, split: str) -> bool:
        """Whether a split has any pairs, or triples."""
        raise NotImplementedError

    def score_split(self, embeddings: Tensor, split: str) -> float:
        """The metric of a split, from the embeddings of all nodes (nodes, width)."""
        device = next(self.decoder.parameters(), embeddings).device
        z = embeddings.to(device)
        self.warning = collapse_note(self.decoder.learned(z))
        return self.score_embeddings(z, split)

    def score_embeddings(self, embeddings: Tensor, split: str) -> float:
        """The metric of a split, from embeddings on the device of the decoder."""
        raise NotImplementedError

    def score(self, outputs: Tensor, nodes: Tensor) -> float:
        raise TypeError("pairs are scored by split: score_split")

    def better(self, score: float, other: float) -> bool:
        return self.metric.better(score, other)

    def _loss(self, name: str) -> PairLoss:
        """The loss of a setting."""
        found = next((known for known in LOSSES if known == name), None)
        if found is None and name != AUTO:
            raise InputError(
                f"{setting('loss', name)} is of single nodes: pairs have {', '.join(LOSSES)}"
            )
        return found or self.usual_loss
