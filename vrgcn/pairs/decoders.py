"""Decoders: the score of a pair from the embeddings of its two nodes.

dot        zᵤ · zᵥ
cosine     the same of embeddings of length 1
lift       the cosine of all columns but the last, plus the last of both nodes, b = t log c: t the
           temperature, c the node's number of training pairs. Training compares cosines alone, with
           negatives that count as often as they have pairs, so that cosine / t becomes the log of
           how much more often a pair occurs than by chance; a ranking adds what chance alone does
distmult   Σ r zᵤ zᵥ, r a learned weight for each dimension
complex    Re Σ r zᵤ z̄ᵥ, the halves of r, zᵤ and zᵥ being the real and imaginary parts of complex
           numbers; the score depends on the pair's direction
mlp        a dense layer, ReLU and a number, of [zᵤ zᵥ, zᵤ, zᵥ]; of [zᵤ zᵥ, zᵤ + zᵥ] where pairs
           have no direction, so that both directions have the same score

Where several relations are predicted, each has a learned r of its own. `query` multiplies a source
by the r of its relation; the result takes the source's place in a score, which has no r then.
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting

_DEVIATION = 0.1  # of the first weights of several relations
_DENSE = 32  # scores of a matrix product that take as long as one whose rows are gathered
_TINY = 1e-20  # keeps the gradient of a length of 0 finite
_NUMBERS = 1 << 23  # numbers of a hidden layer that are held at a time: 32 MB


class Decoder(nn.Module):
    """Scores pairs. one, other: (..., width) of sources and targets, broadcast -> (...).

    relations: how many relations are predicted, their reverses included; 0: one alone
    alike: name of a decoder that gives all relations the same score; None for others
    by_product: whether `against` is one matrix product
    has_prior: whether the last column of embeddings is no direction but a prior of the node
    """

    alike: ClassVar[str | None] = None
    by_product = False
    has_prior = False

    def __init__(self, width: int, directed: bool, relations: int = 0) -> None:
        super().__init__()
        self.directed = directed
        if relations and self.alike is not None:
            raise InputError(
                f"{setting('decoder', self.alike)} gives all relations the same score: use "
                f"{setting('decoder', 'distmult')} or {setting('decoder', 'complex')}"
            )

    def forward(self, one: Tensor, other: Tensor) -> Tensor:
        raise NotImplementedError

    @property
    def compared(self) -> Decoder:
        """The scores that the loss of training compares."""
        return self

    def learned(self, z: Tensor) -> Tensor:
        """The columns of embeddings that are learned."""
        return z[..., :-1] if self.has_prior else z

    def query(self, one: Tensor, relations: Tensor) -> Tensor:
        """(sources, width) what takes the place of the sources (sources, width) if one of several
        relations is asked for, of each (sources,)."""
        return one

    def cubes(self, z: Tensor) -> Tensor:
        """(rows,) the sums of |x|³ of embeddings, or of weights of relations, (rows, width)."""
        return z.abs().pow(3).sum(-1)

    def against(self, one: Tensor, others: Tensor) -> Tensor:
        """(sources, targets) scores of all sources (sources, width) with all targets (targets,
        width)."""
        scores: Tensor = self(one[:, None], others[None])
        return scores

    def pairwise(self, one: Tensor, others: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
        """(pairs,) scores of one[rows] with others[columns]."""
        if self.by_product and len(one) * len(others) <= _DENSE * len(rows):
            return self.against(one, others)[rows, columns]
        scores: Tensor = self(one[rows], others[columns])
        return scores


class Product(Decoder):
    """The product of what each node becomes."""

    by_product = True

    def left(self, z: Tensor) -> Tensor:
        """What a source becomes."""
        return z

    def right(self, z: Tensor) -> Tensor:
        """What a target becomes."""
        return z

    def forward(self, one: Tensor, other: Tensor) -> Tensor:
        return (self.left(one) * self.right(other)).sum(-1)

    def against(self, one: Tensor, others: Tensor) -> Tensor:
        return self.left(one) @ self.right(others).t()


class Dot(Product):
    """zᵤ · zᵥ."""

    alike = "dot"


class Cosine(Product):
    """zᵤ · zᵥ / (|zᵤ| |zᵥ|), of the learned columns."""

    alike = "cosine"

    def left(self, z: Tensor) -> Tensor:
        return F.normalize(self.learned(z), dim=-1)

    right = left


class _LearnedCosine(Cosine):
    """The cosine of all columns but the last."""

    has_prior = True


class Lift(Decoder):
    """The cosine of the learned columns, plus the prior of both nodes, the last column."""

    alike = "lift"
    by_product = True
    has_prior = True

    def __init__(self, width: int, directed: bool, relations: int = 0) -> None:
        super().__init__(width, directed, relations)
        self._cosine = _LearnedCosine(width, directed)

    @property
    def compared(self) -> Decoder:
        return self._cosine

    def forward(self, one: Tensor, other: Tensor) -> Tensor:
        scores: Tensor = self._cosine(one, other)
        return scores + one[..., -1] + other[..., -1]

    def against(self, one: Tensor, others: Tensor) -> Tensor:
        return self._cosine.against(one, others) + one[:, -1:] + others[:, -1]


class DistMult(Product):
    """Σ r zᵤ zᵥ."""

    def __init__(self, width: int, directed: bool, relations: int = 0) -> None:
        super().__init__(width, directed, relations)
        self.weight = nn.Parameter(_drawn(width, relations))

    def times(self, one: Tensor, weight: Tensor) -> Tensor:
        """r zᵤ."""
        return one * weight

    def left(self, z: Tensor) -> Tensor:
        return self.times(z, self.weight) if self.weight.dim() == 1 else z

    def query(self, one: Tensor, relations: Tensor) -> Tensor:
        return one if self.weight.dim() == 1 else self.times(one, self.weight[relations])


class ComplEx(DistMult):
    """Re Σ r zᵤ z̄ᵥ."""

    by_product = False

    def __init__(self, width: int, directed: bool, relations: int = 0) -> None:
        if not directed:
            raise InputError(
                f"{setting('decoder', 'complex')} gives the two directions of a pair different "
                f"scores, and these pairs have none: use {setting('decoder', 'distmult')}"
            )
        if width % 2:
            raise InputError(
                f"{setting('decoder', 'complex')} needs an even number of dimensions, real and "
                f"imaginary parts: {setting('embedding', width)} is odd"
            )
        super().__init__(width, directed, relations)

    def cubes(self, z: Tensor) -> Tensor:
        """The same of the lengths of complex numbers."""
        a, b = z.chunk(2, -1)
        return (a.square() + b.square() + _TINY).pow(1.5).sum(-1)

    def times(self, one: Tensor, weight: Tensor) -> Tensor:
        """(..., width) the product of complex numbers, real parts in the first half."""
        (a, b), (c, d) = one.chunk(2, -1), weight.chunk(2, -1)
        return torch.cat([a * c - b * d, a * d + b * c], dim=-1)


class MLPDecoder(Decoder):
    """A dense layer, ReLU and a number."""

    def __init__(self, width: int, directed: bool, relations: int = 0) -> None:
        super().__init__(width, directed, relations)
        self.weight = nn.Parameter(_drawn(width, relations)) if relations else None
        self.hidden = nn.Linear((3 if directed else 2) * width, 2 * width)
        self.score = nn.Linear(2 * width, 1)

    def forward(self, one: Tensor, other: Tensor) -> Tensor:
        one, other = torch.broadcast_tensors(one, other)
        parts = [one * other, *([one, other] if self.directed else [one + other])]
        scores: Tensor = self.score(F.relu(self.hidden(torch.cat(parts, dim=-1))))[..., 0]
        return scores

    def query(self, one: Tensor, relations: Tensor) -> Tensor:
        return one if self.weight is None else one * self.weight[relations]

    def against(self, one: Tensor, others: Tensor) -> Tensor:
        size = max(_NUMBERS // max(3 * others.numel(), 1), 1)
        return torch.cat([self(part[:, None], others[None]) for part in one.split(size)])


def _drawn(width: int, relations: int) -> Tensor:
    """First weights: 1 of one relation; of several, around 1 and different."""
    if not relations:
        return torch.ones(width)
    return 1 + _DEVIATION * torch.randn(relations, width)


DECODERS: dict[str, type[Decoder]] = {
    "dot": Dot,
    "cosine": Cosine,
    "lift": Lift,
    "distmult": DistMult,
    "complex": ComplEx,
    "mlp": MLPDecoder,
}


def detached(decoder: Decoder) -> dict[str, Any]:
    """The decoder's parameters as numbers that get no gradient."""
    return {name: value.detach() for name, value in decoder.named_parameters()}
