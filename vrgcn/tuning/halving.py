"""Successive halving: decides from the scores of the trials alone whether a trial is pruned.

A trial is judged when it has cost as much as a sixth of the first trial's epochs, then a third and
two thirds: the rungs. Costs are counted (costs/), not timed, so that the same trials are always
judged alike; a trial whose epochs cost twice as much is judged after half as many. At each rung it
continues if its score is in the better half of the scores with which trials reached that rung,
including its own; so a trial with the best score so far always does. Only the scores count: no mark
says that a rung was passed. A search that was killed and resumed therefore judges each epoch as it
was, or would have been, judged before. If all epochs cost the same, the decisions are those of
Optuna's `SuccessiveHalvingPruner`, which keeps such marks.

Trials are not compared with the median of finished trials: these are the best of all, and almost no
trial would reach the scores of their early epochs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import count

_FIRST = 6  # the first rung is after a sixth of the epochs
_FACTOR = 2  # each rung is after this many times the epochs of the one before


def is_pruned(
    curves: Sequence[Mapping[int, float]],
    *,
    epochs: int,
    larger: bool,
    costs: Sequence[float] = (),
) -> bool:
    """Return True if the last trial is pruned at one of the rungs that it has reached. The first
    trial never is: nothing came before it.

    curves: the best score so far by epoch, of each trial in the order in which they ran
    epochs: of a trial that is not pruned
    larger: True if a larger score is better
    costs: of an epoch of each trial, in any unit; none: all the same
    """
    first = max(1, epochs // _FIRST)
    rungs: defaultdict[int, list[float]] = defaultdict(list)
    pruned = False
    costs = costs or [1.0] * len(curves)
    for curve, cost in zip(curves, costs, strict=True):
        pruned = False
        relative = cost / costs[0]
        for rung in count():
            # If not every epoch is evaluated, several rungs may share one score.
            score = next(
                (curve[e] for e in sorted(curve) if relative * e >= first * _FACTOR**rung), None
            )
            if score is None:
                break
            rungs[rung].append(score)
            scores = sorted(rungs[rung], reverse=larger)
            pruned = score not in scores[: max(1, len(scores) // _FACTOR)]
            if pruned:
                break
    return pruned
