"""Sizes and durations in words, and deviations of a few numbers."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import stdev


def bytes_text(size: float) -> str:
    """A number of bytes as text, such as 1.5 MB."""
    for unit in ("B", "kB", "MB"):
        if size < 999.5:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:,.3g} GB" if size < 1000 else f"{size:,.0f} GB"


def seconds_text(seconds: float) -> str:
    """Format a duration, such as 1.23 s or 2 min 3 s."""
    if seconds < 100:
        return f"{seconds:.2f} s"
    return f"{int(seconds // 60)} min {int(seconds % 60)} s"


def deviation(values: Sequence[float]) -> float | None:
    """Return the standard deviation of the sample; None for one value."""
    return stdev(values) if len(values) > 1 else None
