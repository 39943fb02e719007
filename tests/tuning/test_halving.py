"""Which trials continue: the better third at each rung, and those that turn out to be in it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from vrgcn.tuning.halving import Course, Halving

HALVING = Halving(2, larger=True)  # rungs after 2, 4, 8 and 16 epochs of the first trial


def course(number: int, score: float, epochs: int, **given) -> Course:
    return Course(number, dict.fromkeys(range(1, epochs + 1), score), **given)


def ends(scores: Sequence[float], halving: Halving) -> list[int]:
    """The epochs after which trials that score the same in each of 20 epochs are paused."""
    ran: list[Course] = []
    for number, score in enumerate(scores):
        epoch, own = 0, course(number, score, 0)
        for epoch in range(1, 21):
            own = course(number, score, epoch)
            if not halving.continues(own, ran):
                break
        ran.append(course(number, score, epoch, ended=epoch == 20, paused=epoch < 20))
    return [max(each.curve) for each in ran]


def test_the_better_third_of_those_that_came_as_far_continues() -> None:
    # 0.55 is the second of four after 2 epochs, but of three after 4.
    assert ends([0.5, 0.6, 0.4, 0.55, 0.7], HALVING) == [20, 20, 2, 4, 20]


def test_of_errors_the_smaller_third_continues() -> None:
    assert ends([5.0, 4.0, 6.0], Halving(2, larger=False)) == [20, 20, 2]


def test_a_trial_above_the_best_so_far_is_not_paused() -> None:
    others = [course(number, 0.1 * number, 20, ended=True) for number in range(1, 8)]
    for epochs in (2, 4, 8, 16):
        assert HALVING.continues(course(8, 0.71, epochs), others)
        assert not HALVING.continues(course(8, 0.15, epochs), others)
        assert HALVING.continues(course(8, 0.15, 1), others)  # not judged yet


def test_trials_are_compared_at_equal_cost() -> None:
    """An epoch of the second costs three times as much: after 2 epochs it has had the second
    rung."""
    first = Course(0, {epoch: 0.1 * epoch for epoch in range(1, 13)})
    dear = Course(1, {1: 0.25, 2: 0.35}, cost=3.0)
    assert HALVING.rungs(dear) == 2
    assert not HALVING.continues(dear, [first])  # 0.4 after 4 epochs
    assert HALVING.continues(Course(1, {1: 0.25, 2: 0.45}, cost=3.0), [first])
    cheap = Course(1, {3: 0.0}, cost=0.5)
    assert HALVING.continues(cheap, [first])
    assert not HALVING.continues(Course(1, {4: 0.0}, cost=0.5), [first])


def test_a_trial_that_has_ended_keeps_its_score_at_later_rungs() -> None:
    own = course(1, 0.5, 6)
    assert HALVING.continues(own, [course(0, 0.6, 3, paused=True)])
    assert not HALVING.continues(own, [course(0, 0.6, 3, ended=True)])


def test_a_paused_trial_is_promoted_when_others_turn_out_to_be_worse() -> None:
    first, second = course(0, 0.8, 20, ended=True), course(1, 0.7, 2, paused=True)
    known = [first, second]
    assert HALVING.promoted(known) is None
    known.append(course(2, 0.1, 2, paused=True))
    assert HALVING.promoted(known) is None
    known.append(course(3, 0.2, 2, paused=True))  # now it is in the better third of four
    assert HALVING.promoted(known) == second
    assert HALVING.promoted(known, waiting=(1,)) is None


def test_of_the_highest_rung_the_best_is_promoted() -> None:
    known = [course(number, 0.1, 2, paused=True) for number in range(4)]
    low, high = course(4, 0.9, 2, paused=True), course(5, 0.3, 6, paused=True)
    assert HALVING.promoted([*known, low, high]) == high
    assert HALVING.best([*known, low, high]) == low
    assert HALVING.best([]) is None


@pytest.mark.parametrize("every", [1, 3])
def test_several_rungs_may_share_one_score(every: int) -> None:
    """Where not every epoch is evaluated."""
    seldom = Course(0, {epoch: 0.1 * epoch for epoch in range(every, 7, every)})
    assert HALVING.rungs(seldom) == 2
    assert not HALVING.continues(course(1, 0.1, 2), [seldom])
