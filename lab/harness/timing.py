"""Times that can be compared on a noisy machine.

Compared programs take turns in one process, so that disturbances slow all of them alike. Figures
are medians over the turns with their quartiles, and a ratio is formed within each turn before its
median is taken.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median, quantiles

import numpy as np

from vrgcn.files.mistakes import InputError


@dataclass(frozen=True)
class Spread:
    """The median of some values and their quartiles."""

    median: float
    low: float
    high: float

    @staticmethod
    def of(values: Sequence[float]) -> Spread:
        if len(values) == 1:
            return Spread(values[0], values[0], values[0])
        low, _, high = quantiles(values, n=4, method="inclusive")
        return Spread(median(values), low, high)

    def times(self, factor: float) -> Spread:
        return Spread(self.median * factor, self.low * factor, self.high * factor)

    def text(self, decimals: int) -> str:
        """Return text such as 10.4 (10.1–11.0)."""
        low, high = f"{self.low:.{decimals}f}", f"{self.high:.{decimals}f}"
        return f"{self.median:.{decimals}f} ({low}–{high})"

    def as_dict(self) -> dict[str, float]:
        return asdict(self)


def seconds(work: Callable[[], object]) -> float:
    """Return the seconds of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def take_turns(
    timers: Mapping[str, Callable[[], float]], turns: Iterable[int], *, warm_up: bool = True
) -> dict[str, list[float]]:
    """Return the values of each timer in each turn.

    Every turn begins with another timer, so that no timer always follows the same other one.

    warm_up: take a turn first that is not kept
    """
    taken: dict[str, list[float]] = {name: [] for name in timers}
    names = list(timers)
    for name in names if warm_up else []:
        timers[name]()
    for turn in turns:
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            taken[name].append(timers[name]())
    return taken


def ratio(values: Sequence[float], reference: Sequence[float]) -> Spread:
    """Return values / reference, turn by turn: disturbances of both cancel."""
    return Spread.of([a / b for a, b in zip(values, reference, strict=True)])


def exponent(x: Sequence[float], y: Sequence[float]) -> float:
    """Return b of y = a x**b: the slope of the least-squares line through the logarithms."""
    if len(set(x)) < 2:
        raise InputError("an exponent needs at least two different sizes")
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])
