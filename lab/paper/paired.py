"""Decides whether one algorithm ends above or below another, over the seeds that both ran with.

The two start from the same weights for each seed, and the seed affects both: the test is on the
differences, seed by seed (Student's paired t-test, one-sided, at 1%).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean, stdev

LEVEL = 0.01
FEWEST = 5  # seeds from which on a test that finds no difference speaks for there being none


@dataclass(frozen=True)
class Comparison:
    """first, second: means over the seeds that both have
    seeds: how many those are
    p: of a difference at least as large if there were none, one-sided; None for fewer than 2 seeds
    below: whether it was asked for being below
    """

    first: float
    second: float
    seeds: int
    p: float | None
    below: bool = False

    @property
    def difference(self) -> float:
        return self.first - self.second

    @property
    def differs(self) -> bool | None:
        """True if the first is on the requested side, at the level of the test; None: not
        decided."""
        return None if self.p is None else self.p < LEVEL

    @property
    def leans(self) -> bool:
        """True if the first is on that side on average, however little."""
        return self.difference < 0 if self.below else self.difference > 0

    @property
    def shown(self) -> bool | None:
        """True if the first is on that side. Fewer than `FEWEST` runs may fail to show it: None
        then."""
        return True if self.differs else False if self.seeds >= FEWEST else None

    @property
    def refuted(self) -> bool | None:
        """True if the first is not on that side. Few runs that do not show it prove this only if
        they do not lean there either; None: not decided."""
        if self.differs is None or self.differs:
            return None if self.differs is None else False
        return True if self.seeds >= FEWEST or not self.leans else None

    @property
    def p_text(self) -> str:
        if self.p is None:
            return "1 run" if self.seeds == 1 else "no run"
        return "p < 0.0001" if self.p < 1e-4 else f"p = {self.p:.2g}"


def compare(
    first: Mapping[int, float], second: Mapping[int, float], *, below: bool = False
) -> Comparison | None:
    """Compare two algorithms: is the first above the second? Values by seed; None if they have no
    seed in common.

    below: ask whether it is below
    """
    seeds = sorted(first.keys() & second.keys())
    if not seeds:
        return None
    differences = [first[seed] - second[seed] for seed in seeds]
    ours, theirs = (fmean(values[seed] for seed in seeds) for values in (first, second))
    asked = [-difference for difference in differences] if below else differences
    return Comparison(ours, theirs, len(seeds), _p_above_zero(asked), below)


def _p_above_zero(differences: list[float]) -> float | None:
    if len(differences) < 2:
        return None
    mean, spread = fmean(differences), stdev(differences)
    if spread == 0:  # a deviation of none is not known from so few: all have the same sign
        return 0.5 ** len(differences) if mean > 0 else 1.0
    from scipy.stats import t  # its import takes a second

    statistic = mean / (spread / math.sqrt(len(differences)))
    return float(t.sf(statistic, len(differences) - 1))
