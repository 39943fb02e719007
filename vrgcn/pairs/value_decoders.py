"""Decoders of values: a number, or a score of each class, on a pair of nodes, from the embeddings
of both.

distmult   c + a zᵤ + b zᵥ + Σ r zᵤ zᵥ: a bias of each node, as far as its embedding tells it, and
           a weight for each dimension
mlp        a dense layer, ReLU and a dense layer, of [zᵤ zᵥ, zᵤ, zᵥ]

Where pairs have no direction, a and b are the same, and mlp takes [zᵤ zᵥ, zᵤ + zᵥ]. Classes have
an a, b, c and r of their own. Numbers are in the unit of the training values, once `set_scale` has
told it; `within` moves them into the range of these.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.pairs.decoders import Decoder

_NUMBERS = 1 << 23  # numbers of embeddings that are held at a time: 32 MB


class ValueDecoder(Decoder):
    """Decodes a value of a pair.

    classes: how many there are; 0: the value is a number
    unit: of numbers, (4,): mean, deviation, smallest and largest training value
    """

    unit: Tensor

    def __init__(self, width: int, directed: bool, classes: int) -> None:
        super().__init__(width, directed)
        self.classes = classes
        if not classes:
            most = torch.finfo(torch.float32).max
            self.register_buffer("unit", torch.tensor([0.0, 1.0, -most, most]))

    def raw(self, one: Tensor, other: Tensor) -> Tensor:
        """(..., classes), or (..., 1) of a number."""
        raise NotImplementedError

    def set_scale(self, values: Tensor) -> None:
        """Take the unit and the range of numbers from training values (pairs,)."""
        deviation = float(values.std(correction=0)) or 1.0
        unit = [float(values.mean()), deviation, float(values.min()), float(values.max())]
        self.unit.copy_(torch.tensor(unit))

    def forward(self, one: Tensor, other: Tensor) -> Tensor:
        """(...) numbers, or (..., classes) scores of classes."""
        raw = self.raw(one, other)
        if self.classes:
            return raw
        return raw[..., 0] * self.unit[1] + self.unit[0]

    def within(self, decoded: Tensor) -> Tensor:
        """Numbers (...) moved into the range of the training values; classes as they are."""
        return decoded if self.classes else decoded.clamp(self.unit[2], self.unit[3])

    def against(self, one: Tensor, others: Tensor) -> Tensor:
        size = max(_NUMBERS // (3 * max(others.numel(), 1)), 1)
        return torch.cat([self(part[:, None], others[None]) for part in one.split(size)])


class BiasedProduct(ValueDecoder):
    """c + a zᵤ + b zᵥ + Σ r zᵤ zᵥ."""

    def __init__(self, width: int, directed: bool, classes: int) -> None:
        super().__init__(width, directed, classes)
        outputs = max(classes, 1)
        self.source = nn.Linear(width, outputs)
        self.target = nn.Linear(width, outputs, bias=False) if directed else None
        first = torch.full((outputs, width), width**-0.5)
        self.product = nn.Parameter(first if not classes else first * torch.randn(outputs, 1))

    def raw(self, one: Tensor, other: Tensor) -> Tensor:
        scores: Tensor = self.source(one) + (self.target or self.source)(other)
        return scores + (one * other) @ self.product.t()


class ValueMLP(ValueDecoder):
    """A dense layer, ReLU and a dense layer."""

    def __init__(self, width: int, directed: bool, classes: int) -> None:
        super().__init__(width, directed, classes)
        self.hidden = nn.Linear((3 if directed else 2) * width, 2 * width)
        self.score = nn.Linear(2 * width, max(classes, 1))

    def raw(self, one: Tensor, other: Tensor) -> Tensor:
        one, other = torch.broadcast_tensors(one, other)
        parts = [one * other, *([one, other] if self.directed else [one + other])]
        scores: Tensor = self.score(F.relu(self.hidden(torch.cat(parts, dim=-1))))
        return scores


VALUE_DECODERS: dict[str, type[ValueDecoder]] = {"distmult": BiasedProduct, "mlp": ValueMLP}


def value_decoder(name: str, width: int, directed: bool, classes: int) -> ValueDecoder:
    """The decoder of values with a name."""
    if name not in VALUE_DECODERS:
        raise InputError(
            f"{setting('decoder', name)} scores links; values of pairs have "
            f"{' and '.join(VALUE_DECODERS)}"
        )
    return VALUE_DECODERS[name](width, directed, classes)
