"""Comparisons of a few runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, stdev


def difference_error(first: Sequence[float], second: Sequence[float]) -> float:
    """Standard error of the difference of two means (Welch); 0 where a sample has one value."""
    if min(len(first), len(second)) < 2:
        return 0.0
    return math.sqrt(stdev(first) ** 2 / len(first) + stdev(second) ** 2 / len(second))


def tail_mean(curve: Sequence[float], share: float = 0.1) -> float:
    """Mean of the last tenth of a curve, at least of its last point."""
    return fmean(curve[-max(1, round(share * len(curve))) :])
