"""Decoders: the score of a pair from the embeddings of its two nodes.

dot        zᵤ · zᵥ
distmult   Σ r zᵤ zᵥ, r a learned weight for each dimension
mlp        a dense layer, ReLU and a number, of [zᵤ zᵥ, zᵤ, zᵥ]; of [zᵤ zᵥ, zᵤ + zᵥ] where pairs
           have no direction, so that both directions have the same score
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Decoder(nn.Module):
    """Scores pairs. one, other: (..., width) of sources and targets, broadcast -> (...)."""

    def __init__(self, width: int, directed: bool) -> None:
        super().__init__()
        self.directed = directed

    def forward(self, one: Tensor, other: Tensor) -> Tensor:
        raise NotImplementedError

    def against(self, one: Tensor, others: Tensor) -> Tensor:
        """(sources, targets) scores of all sources (sources, width) with all targets (targets,
        width)."""
        scores: Tensor = self(one[:, None], others[None])
        return scores


class Dot(Decoder):
    """zᵤ · zᵥ."""

    def forward(self, one: Tensor, other: Tensor) -> Tensor:
        return (one * other).sum(-1)

    def against(self, one: Tensor, others: Tensor) -> Tensor:
        return one @ others.t()


class DistMult(Decoder):
    """Σ r zᵤ zᵥ."""

    def __init__(self, width: int, directed: bool) -> None:
        super().__init__(width, directed)
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, one: Tensor, other: Tensor) -> Tensor:
        return (one * self.weight * other).sum(-1)

    def against(self, one: Tensor, others: Tensor) -> Tensor:
        return (one * self.weight) @ others.t()


class MLPDecoder(Decoder):
    """A dense layer, ReLU and a number."""

    def __init__(self, width: int, directed: bool) -> None:
        super().__init__(width, directed)
        self.hidden = nn.Linear((3 if directed else 2) * width, 2 * width)
        self.score = nn.Linear(2 * width, 1)

    def forward(self, one: Tensor, other: Tensor) -> Tensor:
        one, other = torch.broadcast_tensors(one, other)
        parts = [one * other, *([one, other] if self.directed else [one + other])]
        scores: Tensor = self.score(F.relu(self.hidden(torch.cat(parts, dim=-1))))[..., 0]
        return scores


DECODERS: dict[str, type[Decoder]] = {"dot": Dot, "distmult": DistMult, "mlp": MLPDecoder}


def detached(decoder: Decoder) -> dict[str, Any]:
    """The decoder's parameters as numbers that get no gradient."""
    return {name: value.detach() for name, value in decoder.named_parameters()}
