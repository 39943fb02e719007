"""Durations, means and standard deviations as text."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, stdev


def seconds_text(seconds: float) -> str:
    """Format a duration, such as 1.23 s or 2 min 3 s."""
    if seconds < 100:
        return f"{seconds:.2f} s"
    return f"{int(seconds // 60)} min {int(seconds % 60)} s"


def deviation(values: Sequence[float]) -> float | None:
    """Return the standard deviation of the sample; None for one value."""
    return stdev(values) if len(values) > 1 else None


def mean_text(values: Sequence[float], scale: float = 1.0, digits: int = 1) -> str:
    """Return mean ± standard deviation, such as 81.9 ± 0.7; only the mean for one value; – for
    none."""
    if not values:
        return "–"
    text = f"{scale * fmean(values):.{digits}f}"
    spread = deviation(values)
    return text if spread is None else f"{text} ± {scale * spread:.{digits}f}"
