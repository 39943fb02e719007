"""Short descriptions of numbers: their range, mean and spread."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Spread:
    """Summary of at least one number."""

    least: float
    mean: float
    deviation: float
    greatest: float

    @staticmethod
    def of(values: NDArray[np.float64]) -> Spread:
        return Spread(
            float(values.min()), float(values.mean()), float(values.std()), float(values.max())
        )

    def __str__(self) -> str:
        numbers = (self.least, self.greatest, self.mean, self.deviation)
        return "{} to {}, mean {}, deviation {}".format(*map(number_text, numbers))


def number_text(value: float) -> str:
    """Format a number with five digits, or as many as stand before the point: 0.012346, 8,893.6,
    1,700,000,000."""
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e15 else f"{value:,.5g}"
