"""Means, deviations and comparisons of a few runs, and how they are written."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, stdev


def deviation(values: Sequence[float]) -> float | None:
    """Standard deviation of the sample; None for one value."""
    return stdev(values) if len(values) > 1 else None


def mean_text(values: Sequence[float], scale: float = 1.0, digits: int = 1) -> str:
    """mean ± standard deviation, such as 81.9 ± 0.7; the mean alone for one value; – for none."""
    if not values:
        return "–"
    text = f"{scale * fmean(values):.{digits}f}"
    spread = deviation(values)
    return text if spread is None else f"{text} ± {scale * spread:.{digits}f}"


def difference_error(first: Sequence[float], second: Sequence[float]) -> float:
    """Standard error of the difference of two means (Welch); 0 where a sample has one value."""
    if min(len(first), len(second)) < 2:
        return 0.0
    return math.sqrt(stdev(first) ** 2 / len(first) + stdev(second) ** 2 / len(second))


def tail_mean(curve: Sequence[float], share: float = 0.1) -> float:
    """Mean of the last tenth of a curve, at least of its last point."""
    return fmean(curve[-max(1, round(share * len(curve))) :])
