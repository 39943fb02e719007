"""Means and variances over repeated passes, and their deviations from a reference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

_FEWEST_PRODUCTS = 8  # fewer do not suffice to estimate tr Σ²


class Moments:
    """Running mean and variance of a list of tensors, entry by entry, in float64 on the CPU.

    count: the number of lists added so far
    mean: the mean of each tensor of the list
    """

    def __init__(self) -> None:
        self.count = 0
        self.mean: list[Tensor] = []
        self._squares: list[Tensor] = []  # sums of squared deviations from the mean (Welford)
        self._unpaired: list[Tensor] | None = None
        self._difference: list[Tensor] | None = None
        self._products: list[list[float]] = []

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
        self._pair(values)

    def _pair(self, values: list[Tensor]) -> None:
        """Scalar products of differences of pairs of draws, (x₁ - x₂)/√2 with (x₃ - x₄)/√2: their
        mean is zero and their mean square tr Σ², for draws of covariance Σ."""
        if self._unpaired is None:
            self._unpaired = values
            return
        halves = zip(values, self._unpaired, strict=True)
        difference = [(value - other) / math.sqrt(2) for value, other in halves]
        if self._difference is not None:
            both = zip(difference, self._difference, strict=True)
            self._products.append([float((a * b).sum()) for a, b in both])
        self._unpaired, self._difference = None, difference

    @property
    def variance(self) -> list[Tensor]:
        """Unbiased variance of one pass; zero after a single pass, as for a constant."""
        return [squares / max(self.count - 1, 1) for squares in self._squares]

    @property
    def variance_of_mean(self) -> list[Tensor]:
        return [variance / self.count for variance in self.variance]

    @property
    def squared_covariance(self) -> float:
        """tr Σ² of one pass's covariance Σ over all entries. It is at most (tr Σ)², the value if
        all entries varied together; with few passes it is taken as that."""
        most = _total(self.variance) ** 2
        if len(self._products) < _FEWEST_PRODUCTS:
            return most
        return min(most, sum(sum(parts) ** 2 for parts in self._products) / len(self._products))

    def part(self, place: int) -> Moments:
        """Return the moments of one tensor of the list."""
        return self.parts([place])

    def parts(self, places: Sequence[int]) -> Moments:
        """Return the moments of some tensors of the list."""
        part = Moments()
        part.count = self.count
        part.mean = [self.mean[place] for place in places]
        part._squares = [self._squares[place] for place in places]
        part._products = [[products[place] for place in places] for products in self._products]
        return part


@dataclass(frozen=True)
class Deviation:
    """An estimate g against the reference r, both means over passes; norms over all entries.

    bias: ‖E g - r‖ / ‖r‖, without what the noise of the two means adds to it on average
    floor: a bias below it cannot be told from none, and more passes lower it
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
        """True if the bias exceeds noise and rounding."""
        return self.bias > max(self.floor, ROUNDING)


ROUNDING = 1e-5  # relative float32 difference between two ways to compute a sum


def deviation(estimate: Moments, reference: Moments) -> Deviation:
    """Return the deviation of an estimate from its reference, relative to the norm of the
    reference.

    The mean of N passes of covariance Σ is off by noise of squared norm tr Σ / N on average, with
    variance 2 tr Σ² / N². The average of both means' noise is taken off ‖E g - r‖², which is then
    unbiased; where it becomes negative, the bias is zero. The floor is the root of three standard
    deviations of that: of noise alone, one measurement in 40 at most exceeds it (a single normal
    number squared does so with probability 0.022, a sum of many with 0.001).
    """
    apart = _norm([g - r for g, r in zip(estimate.mean, reference.mean, strict=True)])
    noise = _total(estimate.variance_of_mean) + _total(reference.variance_of_mean)
    # tr (A + B)² is at most (√(tr A²) + √(tr B²))², for the covariances A and B of the two means.
    spread = math.sqrt(2) * sum(
        math.sqrt(moments.squared_covariance) / moments.count for moments in (estimate, reference)
    )
    return _relative(apart, noise, spread, estimate, _norm(reference.mean))


def paired_deviation(estimate: Moments, reference: Moments, difference: Moments) -> Deviation:
    """Return the deviation when every pass of the estimate is paired with one of the reference, as
    on one minibatch after the other. Noise that both have in common then adds none to the bias.

    difference: moments of g - r, pass by pass

    The result is relative to ‖E r‖, which the norm of the mean r overestimates if r varies: see
    `noise_scale`.
    """
    spread = math.sqrt(2 * difference.squared_covariance) / difference.count
    noise = _total(difference.variance_of_mean)
    scale = math.sqrt(_squared_norm_of_mean(reference))
    return _relative(_norm(difference.mean), noise, spread, estimate, scale)


def _relative(
    apart: float, noise: float, spread: float, estimate: Moments, scale: float
) -> Deviation:
    """Return the deviation from its parts.

    apart: the distance of the means; noise, spread: mean and standard deviation of the squared
        distance that noise alone causes
    """
    return Deviation(
        bias=_ratio(math.sqrt(max(apart**2 - noise, 0.0)), scale),
        floor=_ratio(math.sqrt(3 * spread), scale),
        std=_ratio(math.sqrt(_total(estimate.variance)), scale),
    )


class MeanAbsolute(NamedTuple):
    """Result of mean_absolute_deviation."""

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
    """tr Var g / ‖E g‖²: how much larger the noise of one pass is than the gradient that it
    estimates.

    ‖E g‖² is estimated without bias, by ‖mean‖² - tr Var / N. If noise leaves next to nothing of
    that, ‖mean‖² / N is used, so that the scale stays finite: N passes cannot show more.
    """
    return _ratio(_total(moments.variance), _squared_norm_of_mean(moments))


def _squared_norm_of_mean(moments: Moments) -> float:
    squared, count = _norm(moments.mean) ** 2, moments.count
    return max(squared - _total(moments.variance) / count, squared / count)


def _norm(tensors: Sequence[Tensor]) -> float:
    return math.sqrt(sum(float(tensor.square().sum()) for tensor in tensors))


def _total(tensors: Sequence[Tensor]) -> float:
    return sum(float(tensor.sum()) for tensor in tensors)


def _mean_absolute(tensors: Sequence[Tensor]) -> float:
    entries = sum(tensor.numel() for tensor in tensors)
    return sum(float(tensor.abs().sum()) for tensor in tensors) / max(entries, 1)


def _ratio(value: float, scale: float) -> float:
    """Return value / scale; 0 if both are zero, infinity if only the scale is."""
    if scale > 0:
        return value / scale
    return 0.0 if value == 0 else math.inf
