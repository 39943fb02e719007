"""The rules of a race between candidates."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from vrgcn.runs.race import MOST, Outcome, Race, Racer, Turn
from vrgcn.tasks.metrics import METRICS
from vrgcn.training.state import Epoch

Learner = Callable[[int], float]


def point(epoch: int, score: float | None) -> Epoch:
    return Epoch(epoch, 0.0, score, 0.0, None, 0.0, 0.0)


def raced(
    race: Race, learners: dict[str, Learner], before: dict[str, list[Epoch]] | None = None
) -> tuple[list[Turn], Outcome, dict[str, list[Epoch]]]:
    """Follow the rules; scores of an epoch are those of a learner."""
    curves: dict[str, list[Epoch]] = {r.name: [] for r in race.racers} | (before or {})
    every = {r.name: r.every for r in race.racers}
    turns: list[Turn] = []
    while True:
        found = race.next(curves)
        if isinstance(found, Outcome):
            return turns, found, curves
        turns.append(found)
        curve = curves[found.name]
        assert len(curve) < found.epochs
        for epoch in range(len(curve) + 1, found.epochs + 1):
            scored = epoch % every[found.name] == 0
            curve.append(point(epoch, learners[found.name](epoch) if scored else None))


def flat(score: float) -> Learner:
    """Learns slowly towards a score, without noise."""
    return lambda epoch: score * (1 - 0.5**epoch)


def two(work: float = 1.0, **changes: float) -> list[Racer]:
    return [Racer("usual", 1.0, 100, 10), replace(Racer("other", work, 100, 10), **changes)]


def race(racers: list[Racer], validated: int = 1000, metric: str = "accuracy") -> Race:
    return Race(racers, METRICS[metric], validated)


def test_the_usual_candidate_starts_and_rounds_grow_to_twice_the_work() -> None:
    turns, outcome, _ = raced(race(two()), {"usual": flat(0.8), "other": flat(0.8)})
    assert [(turn.name, turn.epochs) for turn in turns[:4]] == [
        ("usual", 2),
        ("other", 2),
        ("usual", 4),
        ("other", 4),
    ]
    assert outcome.winner == "usual"


def test_a_candidate_of_half_the_cost_has_twice_the_epochs() -> None:
    racers = [replace(r, pace=r.work) for r in two(0.5)]
    turns, _, _ = raced(race(racers), {"usual": lambda _: 0.8, "other": lambda _: 0.8})
    assert turns[:4] == [Turn("usual", 2), Turn("other", 4), Turn("usual", 4), Turn("other", 8)]


def test_rounds_of_equal_epochs_ask_for_no_equal_work() -> None:
    turns, _, _ = raced(race(two(0.5)), {"usual": flat(0.8), "other": flat(0.8)})
    assert turns[:2] == [Turn("usual", 2), Turn("other", 2)]


def test_rounds_end_after_so_many_epochs() -> None:
    _, _, curves = raced(race(two()), {"usual": flat(0.8), "other": flat(0.8)})
    assert len(curves["other"]) == MOST


def test_the_best_one_trains_on_until_it_can_pay_for_a_dear_one() -> None:
    turns, _, _ = raced(race(two(8.0)), {"usual": lambda n: 0.02 * n, "other": lambda n: 0.03 * n})
    dear = next(place for place, turn in enumerate(turns) if turn.name == "other")
    assert turns[dear] == Turn("other", 2)
    # Two epochs of 8 are half of 32, which are 22 and twice 11; the curve was known to its end.
    assert turns[dear - 1] == Turn("usual", 11)


def test_of_candidates_that_know_nothing_yet_the_last_named_leaves_first() -> None:
    works = {"usual": 1.0, "dear": 4.0, "last": 2.0}
    racers = [Racer(name, work, 100, 10) for name, work in works.items()]

    def late(epoch: int) -> float:
        return 0.9 if epoch > 2 else 0.0

    learners: dict[str, Learner] = {"usual": lambda n: 0.0005 * n, "dear": late, "last": late}
    _, outcome, curves = raced(race(racers), learners)
    assert (outcome.winner, len(curves["last"])) == ("dear", 2)


def test_a_candidate_far_behind_leaves_after_the_first_round() -> None:
    _, outcome, curves = raced(race(two()), {"usual": flat(0.9), "other": flat(0.5)})
    assert (len(curves["usual"]), len(curves["other"])) == (2, 2)
    assert outcome.winner == "usual"
    assert set(outcome.scores) == {"usual", "other"}


def test_the_usual_candidate_may_leave_too() -> None:
    _, outcome, curves = raced(race(two()), {"usual": flat(0.5), "other": flat(0.9)})
    assert (outcome.winner, len(curves["usual"])) == ("other", 2)


@pytest.mark.parametrize(("validated", "rounds"), [(100_000, 1), (100, 5)])
def test_noise_of_few_validation_nodes_keeps_a_candidate_in(validated: int, rounds: int) -> None:
    learners = {"usual": flat(0.8), "other": flat(0.75)}
    turns, _, _ = raced(race(two(), validated), learners)
    assert len([turn for turn in turns if turn.name == "other"]) == rounds


@pytest.mark.parametrize(("other", "winner"), [(0.803, "usual"), (0.82, "other")])
def test_another_candidate_wins_if_it_is_better_by_its_gain(other: float, winner: str) -> None:
    learners = {"usual": flat(0.8), "other": flat(other)}
    assert raced(race(two(gain=0.005)), learners)[1].winner == winner


@pytest.mark.parametrize(("other", "winner"), [(1.97, "usual"), (1.9, "other")])
def test_a_smaller_error_is_better(other: float, winner: str) -> None:
    learners = {"usual": lambda _: 2.0, "other": lambda _: other}
    found = raced(race(two(gain=0.005), metric="rmse"), learners)[1]
    assert found.winner == winner


def test_a_candidate_that_would_exceed_the_budget_does_not_start() -> None:
    """A run that is taken to have 24 epochs pays for others that cost 12."""

    def usual(epoch: int) -> float:
        return 0.8 if epoch == 2 else 0.7  # its length never grows

    for work, starts in ((7.0, False), (6.0, True)):
        _, outcome, curves = raced(race(two(work)), {"usual": usual, "other": lambda _: 0.9})
        assert bool(curves["other"]) is starts
        assert outcome.winner == ("other" if starts else "usual")


def total_work(
    found: Outcome, curves: dict[str, list[Epoch]], racers: list[Racer], learner: Learner
) -> tuple[float, float]:
    """Return the work of all, and that of the winner if it trains on until it ends."""
    winner = next(r for r in racers if r.name == found.winner)
    lost = sum(r.work * len(curves[r.name]) for r in racers if r is not winner)
    best, at, epoch = -math.inf, 0, 0
    least = winner.least(lost)
    while epoch < winner.epochs and (epoch - at < winner.patience or epoch < least):
        epoch += 1
        if learner(epoch) > best:
            best, at = learner(epoch), epoch
    alone = winner.work * max(epoch, len(curves[winner.name]))
    return alone + lost, alone


def test_all_candidates_cost_at_most_half_more_than_the_winner_alone() -> None:
    generator = torch.Generator().manual_seed(0)
    compared, shares = 0, []
    for _ in range(200):
        count = 2 + int(torch.randint(3, (1,), generator=generator))
        racers, learners = [], {}
        for number in range(count):
            work, limit, speed, noise = torch.rand(4, generator=generator).tolist()
            patience = int(torch.randint(1, 30, (1,), generator=generator))
            name = str(number)
            racers.append(Racer(name, 10 ** (1.5 * work - 0.75), 100, patience, 1, 0.005))
            jitter = (0.03 * noise * torch.randn(101, generator=generator)).tolist()

            def learner(
                epoch: int, limit: float = limit, speed: float = speed, jitter: list = jitter
            ) -> float:
                return 0.5 + 0.4 * limit * (1 - math.exp(-speed * epoch / 3)) + jitter[epoch]

            learners[name] = learner
        _, found, curves = raced(race(racers), learners)
        total, alone = total_work(found, curves, racers, learners[found.winner])
        assert total <= 1.5 * alone + 1e-9
        compared += len(found.scores) > 1
        shares.append(total / alone)
    assert compared > 100
    assert max(shares) > 1.3  # the budget is used


def test_what_was_spent_before_counts() -> None:
    learners: dict[str, Learner] = {"usual": lambda _: 0.8, "other": lambda _: 0.8}
    free = raced(race(two()), learners)[2]
    spent = raced(replace(race(two()), spent=6.0), learners)[2]
    assert len(spent["other"]) < len(free["other"])


def test_an_interrupted_race_continues_from_the_curves() -> None:
    racers = [*two(), Racer("third", 0.7, 100, 10)]
    learners = {"usual": flat(0.8), "other": flat(0.81), "third": flat(0.805)}
    turns, outcome, curves = raced(race(racers), learners)
    for cut in range(sum(map(len, curves.values()))):
        part: dict[str, list[Epoch]] = {name: [] for name in curves}
        left = cut
        for turn in turns:  # what was trained when so many epochs were done in all
            take = min(left, turn.epochs - len(part[turn.name]))
            left -= take
            part[turn.name] = curves[turn.name][: len(part[turn.name]) + take]
        _, again, ends = raced(race(racers), learners, part)
        assert (again, ends) == (outcome, curves)


def test_a_run_that_began_before_gives_the_others_the_work_that_it_had() -> None:
    """Ways to train a model are compared with the training that chose the model."""
    before = {"usual": [point(n, flat(0.8)(n)) for n in range(1, 6)]}
    turns, _, _ = raced(race(two()), {"usual": flat(0.8), "other": flat(0.8)}, before)
    assert turns[0] == Turn("other", 2)
    assert next(turn for turn in turns if turn.name == "usual").epochs > 5


def test_a_candidate_that_failed_is_out() -> None:
    learners = {"usual": flat(0.5), "other": flat(0.9)}
    failed = replace(race(two()), failed={"other"})
    assert raced(failed, learners)[1].winner == "usual"


def test_without_time_the_best_so_far_wins() -> None:
    racers = race(two())
    curves = {
        "usual": [point(1, 0.4), point(2, 0.5)],
        "other": [point(1, 0.5), point(2, 0.6)],
    }
    assert isinstance(racers.next(curves, over=True), Outcome)
    assert racers.next(curves, over=True).winner == "other"  # type: ignore[union-attr]
    assert racers.next({"usual": [], "other": []}, over=True) == Outcome("usual", {})


def test_rounds_end_with_epochs_that_are_evaluated() -> None:
    racers = [Racer("usual", 1.0, 60, 10, 5), Racer("other", 0.7, 60, 10, 5)]
    turns, _, _ = raced(race(racers), {"usual": flat(0.8), "other": flat(0.8)})
    assert turns
    assert all(turn.epochs % 5 == 0 for turn in turns)
