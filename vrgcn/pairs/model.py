"""A model of pairs: a network that embeds nodes, and a decoder that scores pairs of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.graph.predicted_edges import PredictedEdges
from vrgcn.graph.randomness import default_generator
from vrgcn.models.lightgcn import LIGHT, LightGCN
from vrgcn.models.models import MODELS, GraphModel
from vrgcn.models.relational import RELATIONAL, RelationalModel
from vrgcn.pairs.decoders import DECODERS, Decoder
from vrgcn.pairs.value_decoders import value_decoder

Encoder = GraphModel | RelationalModel | LightGCN
ENCODERS: dict[str, type[Encoder]] = {
    # The last layers of a model that is added to its input need more than what was propagated.
    **{name: kind for name, kind in MODELS.items() if not kind.embeds},
    **RELATIONAL,
    **LIGHT,
}


class PairModel(nn.Module):
    """Embeds nodes as a model of single nodes computes its outputs; `decoder` scores pairs.

    encoder: a name of ENCODERS; arguments: those of that model, `classes` the embedding's width
    decoder: a name of DECODERS
    relation, directed: what it predicts, as `Pairs` says
    directions: where it predicts the edges of all relations, their names and those of their
        reverses, as `Triples` says; None: one relation
    values: where it predicts a column of the pairs, how many classes that has, 0 for a number;
        None: whether pairs are linked. Decoders are those of VALUE_DECODERS then

    With GCN, two layers and the decoder dot this is the GAE of Kipf and Welling.
    """

    def __init__(
        self,
        encoder: str,
        decoder: str = "dot",
        *,
        relation: str,
        directed: bool,
        directions: Sequence[str] | None = None,
        values: int | None = None,
        **arguments: Any,
    ) -> None:
        super().__init__()
        if encoder not in ENCODERS:
            raise InputError(f"encoder {encoder!r} is none of {', '.join(ENCODERS)}")
        if decoder not in DECODERS:
            raise InputError(f"decoder {decoder!r} is none of {', '.join(DECODERS)}")
        if values is None and DECODERS[decoder].has_prior:
            if ENCODERS[encoder] is not LightGCN:
                raise InputError(
                    f"{setting('decoder', decoder)} needs the embeddings of "
                    f"{setting('model', 'lightgcn')}: take {setting('decoder', 'cosine')}"
                )
            self.encoder: Encoder = LightGCN(**arguments, prior=True)
        else:
            self.encoder = ENCODERS[encoder](**arguments)
        if isinstance(self.encoder, GraphModel) and self.encoder.labels is not None:
            raise InputError(
                f"{setting('neighbour_labels', True)}: pairs have no labels of single nodes"
            )
        width = arguments["classes"]
        self.decoder: Decoder
        if values is None:
            self.decoder = DECODERS[decoder](width, directed, len(directions or ()))
        else:
            self.decoder = value_decoder(decoder, width, directed, values)
        self.propagation = self.encoder.propagation
        self.arguments: dict[str, Any] = {
            "encoder": encoder,
            "decoder": decoder,
            "relation": relation,
            "directed": directed,
            "directions": None if directions is None else list(directions),
            "values": values,
            **self.encoder.arguments,
        }

    @staticmethod
    def around(encoder: nn.Module, decoder: str, pairs: PredictedEdges, seed: int) -> PairModel:
        """A model of pairs like a network of single nodes, with weights from the seed.

        encoder: of a class of ENCODERS
        """
        names = {kind: name for name, kind in ENCODERS.items()}
        if type(encoder) not in names:
            raise InputError(
                f"{setting('model', 'residual')} predicts no pairs: take graphsage or gcn"
            )
        assert isinstance(encoder, Encoder)
        arguments = {**pairs.arguments, **encoder.arguments}
        with default_generator(torch.device("cpu"), seed):
            return PairModel(names[type(encoder)], decoder, **arguments)

    def forward(self, x: Tensor, propagate: Any) -> Tensor:
        """(nodes, width) embeddings."""
        embedded: Tensor = self.encoder(x, propagate)
        return embedded
