"""Successive halving: trials that lie behind are pruned, as their scores alone decide.

Optuna's own pruner notes in the study which bars a trial was held against, and lets it pass if it
is asked once more about the same epoch. A search that was killed at that moment would go on with
trials that it had given up. This one keeps nothing, and answers the same however often it is asked.
"""

from __future__ import annotations

import math

from optuna.pruners import BasePruner
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial


class Halving(BasePruner):
    """After `first` epochs, twice as many, and so on, a trial goes on if its score is in the better
    half of those of all trials that came as far, its own among them."""

    def __init__(self, first: int) -> None:
        self.first = first

    def prune(self, study: Study, trial: FrozenTrial) -> bool:
        """Whether to stop a trial at the last epoch that it reported."""
        epochs = sorted(trial.intermediate_values)
        if not epochs:
            return False
        score, before = trial.intermediate_values[epochs[-1]], max(epochs[:-1], default=0)
        others = [t for t in study.get_trials(deepcopy=False) if t.number != trial.number]
        bar = self.first
        while bar <= epochs[-1]:
            if bar > before:
                scores = [score, *(s for t in others if (s := _score(t, bar)) is not None)]
                if not _in_better_half(score, scores, study.direction):
                    return True
            bar *= 2
        return False


def _score(trial: FrozenTrial, bar: int) -> float | None:
    """Of the first epoch at or beyond the bar for which there is one; None if it never came so
    far."""
    reached = [epoch for epoch in trial.intermediate_values if epoch >= bar]
    return trial.intermediate_values[min(reached)] if reached else None


def _in_better_half(score: float, scores: list[float], direction: StudyDirection) -> bool:
    if math.isnan(score):
        return False
    best_first = sorted(
        (s for s in scores if not math.isnan(s)), reverse=direction == StudyDirection.MAXIMIZE
    )
    last = best_first[max(len(best_first) // 2 - 1, 0)]
    return score >= last if direction == StudyDirection.MAXIMIZE else score <= last
