"""Greedy selection of an average on validation predictions (Caruana et al., ICML 2004).

The average begins empty. Each round adds the member, new or again, that gives the average the best
score; after all rounds the best of these averages is kept. A member's weight is the share of the
rounds in which it was added. Nothing is random, and ties go to the average of fewer members, then
to the earlier member and round.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from torch import Tensor

_ROUNDS = 40


@dataclass(frozen=True)
class Chosen:
    """The chosen average. weights: of the chosen members, with sum 1; score: of the average"""

    weights: dict[str, float]
    score: float


def choose_average(
    shares: Mapping[str, Tensor],
    score: Callable[[Tensor], float],
    better: Callable[[float, float], bool],
    rounds: int = _ROUNDS,
) -> Chosen:
    """Return the best-scoring average that greedy selection finds.

    shares: (validation nodes, width) of each member, as `Task.shares` gives them
    score: of the mean of shares; better: True if a score is better than another
    """
    if not shares:
        raise ValueError("there are no predictions to average")
    names, added = list(shares), Counter[str]()
    total: Tensor | None = None
    best: tuple[float, dict[str, float]] | None = None
    for count in range(1, rounds + 1):
        found: tuple[float, str] | None = None
        # Chosen members come first: of equal scores the first is taken.
        for name in sorted(names, key=lambda name: name not in added):
            sums = shares[name] if total is None else total + shares[name]
            value = score(sums / count)
            if found is None or better(value, found[0]):
                found = value, name
        assert found is not None
        value, name = found
        added[name] += 1
        total = shares[name] if total is None else total + shares[name]
        weights = {each: added[each] / count for each in names if each in added}
        if best is None or better(value, best[0]):  # later rounds have as many members or more
            best = value, weights
    assert best is not None
    return Chosen(best[1], best[0])
