"""Dropout from random bytes.

`torch.nn.Dropout` draws a floating-point number per element, on the CPU the largest single cost of
a wide input. Comparing random bytes with a threshold needs an eighth of the random bits.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from vrgcn.graph.randomness import own_generator
from vrgcn.graph.sparse import in_blocks, is_sparse, with_values
from vrgcn.models.config import check_dropout


class Dropout(nn.Module):
    """Sets elements to zero with probability p and scales the others by 1 / (1 - p).

    p is taken to the nearest 1/256 where that is within 1% of it (0.2 becomes 51/256), else to the
    nearest 1/65536; the scale is that of the probability taken, so the mean is exact. In `fit` it
    draws from the run's own generator, elsewhere from PyTorch's default one, as `torch.nn.Dropout`
    does. Of a sparse CSR tensor, and of blocks, the stored values are dropped.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        check_dropout(p)
        self.p = p
        self.bits, self.threshold = _quantise(p)

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.threshold == 0:
            return x
        if in_blocks(x):
            return x.map(self.forward)
        if is_sparse(x):
            return with_values(x, self._drop(x.values()))
        return self._drop(x)

    def _drop(self, x: Tensor) -> Tensor:
        levels = 1 << self.bits
        keep = _at_least(_random(x.shape, self.bits, x.device), self.threshold - levels // 2)
        dropped: Tensor = _Masked.apply(x, keep, levels / (levels - self.threshold))
        return dropped

    def extra_repr(self) -> str:
        return f"p={self.p}"


class _Masked(torch.autograd.Function):
    """x * keep * scale, remembering only the mask, one or two bytes an element."""

    @staticmethod
    def forward(ctx, x: Tensor, keep: Tensor, scale: float) -> Tensor:  # type: ignore[no-untyped-def]
        ctx.keep, ctx.scale = keep, scale
        return _mask(x, keep, scale)

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None, None]:  # type: ignore[no-untyped-def]
        return _mask(grad, ctx.keep, ctx.scale), None, None


def _mask(x: Tensor, keep: Tensor, scale: float) -> Tensor:
    # Widening small integers is vectorised on the CPU; a product with a boolean mask is not, and
    # takes ten times as long. Scale and product in one pass: of wide rows each is a trip to memory.
    mask = keep.to(x.dtype)
    return torch.addcmul(x.new_zeros(()), mask, x, value=scale, out=mask)


def _at_least(values: Tensor, threshold: int) -> Tensor:
    """1 where values >= threshold, else 0, in the integers' own type; changes `values`.

    The same as a comparison, which on the CPU takes several times as long as these two steps.
    """
    return values.clamp_(threshold - 1, threshold).sub_(threshold - 1)


def _quantise(p: float) -> tuple[int, int]:
    """(bits, threshold): p is about threshold / 2**bits."""
    threshold = round(p * 256)
    close = abs(threshold / 256 - p) <= 0.01 * min(p, 1 - p)
    return (8, threshold) if close else (16, min(round(p * 65536), 65535))


def _random(shape: torch.Size, bits: int, device: torch.device) -> Tensor:
    """Uniform signed integers of 8 or 16 bits."""
    count = shape.numel()
    words = torch.empty(-(-count * bits // 64), dtype=torch.int64, device=device)
    words.random_(-(2**63), None, generator=own_generator(device))
    return words.view(torch.int8 if bits == 8 else torch.int16)[:count].view(shape)
