"""Means and standard deviations as text."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from vrgcn.files.wording import deviation


def mean_text(values: Sequence[float], scale: float = 1.0, digits: int = 1) -> str:
    """Return mean ± standard deviation, such as 81.9 ± 0.7; only the mean for one value; – for
    none."""
    if not values:
        return "–"
    text = f"{scale * fmean(values):.{digits}f}"
    spread = deviation(values)
    return text if spread is None else f"{text} ± {scale * spread:.{digits}f}"
