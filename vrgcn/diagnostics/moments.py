"""Means and variances over repeated passes, and how far they are from a reference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor


class Moments:
    """Running mean and variance of a list of tensors, entry by entry, in float64 on the CPU.

    count: how many were added
    mean: a tensor for each of the list
    """

    def __init__(self) -> None:
        self.count = 0
        self.mean: list[Tensor] = []
        self._squares: list[Tensor] = []  # sums of squared deviations from the mean (Welford)

    def add(self, tensors: Sequence[Tensor]) -> None:
        values = [tensor.detach().to("cpu", torch.float64) for tensor in tensors]
        if not self.count:
            self.mean = [torch.zeros_like(value) for value in values]
            self._squares = [torch.zeros_like(value) for value in values]
        self.count += 1
        for value, mean, squares in zip(values, self.mean, self._squares, strict=True):
            before = value - mean
            mean.add_(before / self.count)
            squares.add_(before * (value - mean))

    @property
    def variance(self) -> list[Tensor]:
        """Of one pass, unbiased; zero where only one was made, as for what does not vary."""
        return [squares / max(self.count - 1, 1) for squares in self._squares]

    @property
    def variance_of_mean(self) -> list[Tensor]:
        return [variance / self.count for variance in self.variance]

    def part(self, place: int) -> Moments:
        """Those of one tensor of the list."""
        return self._slice(slice(place, place + 1))

    def rest(self, first: int) -> Moments:
        """Those of the tensors from the first-th (from 0) on."""
        return self._slice(slice(first, None))

    def _slice(self, places: slice) -> Moments:
        part = Moments()
        part.count = self.count
        part.mean, part._squares = self.mean[places], self._squares[places]
        return part


@dataclass(frozen=True)
class Deviation:
    """An estimate g against the reference r, both means over passes; norms over all entries.

    bias: ‖E g - r‖ / ‖r‖, without what the noise of the two means adds to it on average
    floor: twice the root of that addition; a bias below it cannot be told from none, and more
        passes lower it. Noise alone exceeds it once in 40 measurements at most: then the squared
        distance is 5 times its mean, the likelier the fewer ways there are to vary, and a single
        normal number does so with probability 0.025
    std: √(tr Var g) / ‖r‖, the noise of one pass
    error: √(E ‖g - r‖²) / ‖r‖ = √(bias² + std²), how far one pass is from the reference
    """

    bias: float
    floor: float
    std: float

    @property
    def error(self) -> float:
        return math.hypot(self.bias, self.std)

    @property
    def biased(self) -> bool:
        """Whether there is a bias beyond noise and rounding."""
        return self.bias > max(self.floor, ROUNDING)


ROUNDING = 1e-5  # relative: what float32 leaves of two ways to compute the same sum


def deviation(estimate: Moments, reference: Moments) -> Deviation:
    """How far an estimate is from its reference, relative to the latter's norm.

    The mean of N passes is off by noise of squared norm tr Var / N on average. That of both means
    is taken off ‖E g - r‖², which is then unbiased; where it becomes negative, the bias is zero.
    """
    scale = _norm(reference.mean)
    raw = sum(
        float((g - r).square().sum()) for g, r in zip(estimate.mean, reference.mean, strict=True)
    )
    noise = _total(estimate.variance_of_mean) + _total(reference.variance_of_mean)
    return Deviation(
        bias=_ratio(math.sqrt(max(raw - noise, 0.0)), scale),
        floor=_ratio(2 * math.sqrt(noise), scale),
        std=_ratio(math.sqrt(_total(estimate.variance)), scale),
    )


class MeanAbsolute(NamedTuple):
    """See mean_absolute_deviation."""

    bias: float
    floor: float
    std: float


def mean_absolute_deviation(estimate: Moments, reference: Moments) -> MeanAbsolute:
    """The same in the paper's measures, means of absolute values in place of norms:

        bias = mean |E g - r| / mean |r|,   std = mean (std g) / mean |r|

    The bias is as measured, noise included: floor is what normal noise alone gives it on average.
    """
    scale = _mean_absolute(reference.mean)
    difference = [g - r for g, r in zip(estimate.mean, reference.mean, strict=True)]
    noise = [
        (g + r).sqrt()
        for g, r in zip(estimate.variance_of_mean, reference.variance_of_mean, strict=True)
    ]
    return MeanAbsolute(
        bias=_ratio(_mean_absolute(difference), scale),
        floor=_ratio(math.sqrt(2 / math.pi) * _mean_absolute(noise), scale),
        std=_ratio(_mean_absolute([variance.sqrt() for variance in estimate.variance]), scale),
    )


def noise_scale(moments: Moments) -> float:
    """tr Var g / ‖E g‖²: how much larger the noise of one pass is than what it estimates.

    ‖E g‖² is estimated without bias, by ‖mean‖² - tr Var / N. Where noise leaves next to nothing
    of that it is taken as ‖mean‖² / N, so that the scale stays finite: N passes show no more.
    """
    total = _total(moments.variance)
    squared = _norm(moments.mean) ** 2
    return _ratio(total, max(squared - total / moments.count, squared / moments.count))


def _norm(tensors: Sequence[Tensor]) -> float:
    return math.sqrt(sum(float(tensor.square().sum()) for tensor in tensors))


def _total(tensors: Sequence[Tensor]) -> float:
    return sum(float(tensor.sum()) for tensor in tensors)


def _mean_absolute(tensors: Sequence[Tensor]) -> float:
    entries = sum(tensor.numel() for tensor in tensors)
    return sum(float(tensor.abs().sum()) for tensor in tensors) / max(entries, 1)


def _ratio(value: float, scale: float) -> float:
    """value / scale; of nothing to nothing it is 0, of something to nothing infinite."""
    if scale > 0:
        return value / scale
    return 0.0 if value == 0 else math.inf
