"""Which trials are pruned: the worse half at each rung, as Optuna's own pruner decides."""

from __future__ import annotations

import random
from itertools import accumulate

import pytest

from vrgcn.tuning.halving import is_pruned
from vrgcn.tuning.study import curves

optuna = pytest.importorskip("optuna")


def ends(scores: list[float], *, larger: bool) -> dict[float, int]:
    """The last epoch of trials that score the same in each of 12 epochs."""
    found: dict[float, int] = {}
    ran: list[dict[int, float]] = []
    for score in scores:
        ran.append({})
        for epoch in range(1, 13):
            ran[-1][epoch] = score
            if is_pruned(ran, epochs=12, larger=larger):
                break
        found[score] = epoch
    return found


def test_the_better_half_of_those_that_came_as_far_goes_on() -> None:
    """Rungs of 12 epochs: after 2, 4 and 8."""
    scores = [0.5, 0.6, 0.4, 0.55, 0.7, 0.58, 0.3]
    # 0.55 is the second of four after 2 epochs, and the third of three after 4.
    wanted = {0.5: 12, 0.6: 12, 0.4: 2, 0.55: 4, 0.7: 12, 0.58: 4, 0.3: 2}
    assert ends(scores, larger=True) == wanted


def test_of_errors_the_smaller_half_goes_on() -> None:
    assert ends([5.0, 4.0, 6.0], larger=False) == {5.0: 12, 4.0: 12, 6.0: 2}


@pytest.mark.parametrize("seed", range(60))
def test_the_decisions_are_those_of_optunas_pruner(seed: int) -> None:
    """On random curves of both directions, with ties, with epochs that are not evaluated, and with
    trials that fail or end early."""
    draw = random.Random(seed)
    epochs, every, larger = draw.randint(1, 40), draw.choice((1, 1, 2, 3, 7)), draw.random() < 0.5
    study = optuna.create_study(
        direction="maximize" if larger else "minimize",
        pruner=optuna.pruners.SuccessiveHalvingPruner(
            min_resource=max(1, epochs // 6), reduction_factor=2
        ),
    )
    judged = set()
    for _ in range(12):
        trial = study.ask()
        last = epochs if draw.random() < 0.7 else draw.randint(1, epochs)
        raw = [round(draw.gauss(0, 1), 1) for _ in range(last)]
        best = list(accumulate(raw, max if larger else min))
        state = draw.choice((optuna.trial.TrialState.COMPLETE, optuna.trial.TrialState.FAIL))
        for epoch in range(1, last + 1):
            if epoch % every and epoch != last:
                continue
            trial.report(best[epoch - 1], epoch)
            pruned = trial.should_prune()
            assert is_pruned(curves(study, trial), epochs=epochs, larger=larger) == pruned
            judged.add(pruned)
            if pruned:
                assert trial.number > 0
                state = optuna.trial.TrialState.PRUNED
                break
        values = best[-1] if state == optuna.trial.TrialState.COMPLETE else None
        study.tell(trial, values, state=state)
    assert judged == {True, False}


def test_trials_are_compared_at_equal_cost() -> None:
    """An epoch of the second costs twice as much: after 3 of 12 epochs it has had the second rung,
    which the first reaches after 4."""
    first = {epoch: 0.1 * epoch for epoch in range(1, 13)}
    slow = {1: 0.15}
    assert is_pruned([first, slow], epochs=12, larger=True, costs=[5.0, 10.0])  # 0.2 after 2
    assert not is_pruned([first, slow], epochs=12, larger=True)
    slow = {1: 0.25, 2: 0.35}
    assert is_pruned([first, slow], epochs=12, larger=True, costs=[5.0, 10.0])  # 0.4 after 4
    slow = {1: 0.25, 2: 0.45}
    assert not is_pruned([first, slow], epochs=12, larger=True, costs=[5.0, 10.0])
    cheap = {3: 0.0}
    assert not is_pruned([first, cheap], epochs=12, larger=True, costs=[5.0, 2.5])
    assert is_pruned([first, {4: 0.0}], epochs=12, larger=True, costs=[5.0, 2.5])


def test_a_trial_above_the_best_so_far_is_not_pruned() -> None:
    others = [dict.fromkeys(range(1, 13), 0.1 * n) for n in range(1, 8)]
    for epoch in (2, 4, 8):
        assert not is_pruned([*others, {epoch: 0.71}], epochs=12, larger=True)
        assert is_pruned([*others, {epoch: 0.15}], epochs=12, larger=True)
