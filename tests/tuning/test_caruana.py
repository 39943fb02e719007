"""Greedy averages: better than their members, deterministic, of few members."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from tests.messages import refused
from vrgcn.tasks.metrics import METRICS
from vrgcn.tuning.caruana import choose_average, choose_robustly, evaluations

RMSE, ACCURACY = METRICS["rmse"], METRICS["accuracy"]


def numbers(count: int, seed: int = 0) -> tuple[dict[str, Tensor], Tensor]:
    """Guesses with errors of their own, the first of them the least."""
    generator = torch.Generator().manual_seed(seed)
    truth = torch.randn(400, generator=generator).double()
    guesses = {
        f"m{i}": (truth + (0.5 + 0.1 * i) * torch.randn(400, generator=generator))[:, None]
        for i in range(count)
    }
    return guesses, truth


def test_errors_that_differ_cancel_and_the_score_is_that_of_the_average() -> None:
    guesses, truth = numbers(4)
    chosen = choose_average(guesses, lambda mean: RMSE.compute(mean, truth), RMSE.better)
    mean = sum(weight * guesses[name] for name, weight in chosen.weights.items())
    assert isinstance(mean, Tensor)
    assert chosen.score == pytest.approx(RMSE.compute(mean, truth))
    assert chosen.score < 0.8 * min(RMSE.compute(guess, truth) for guess in guesses.values())
    assert sum(chosen.weights.values()) == pytest.approx(1.0)
    assert chosen.weights["m0"] == max(chosen.weights.values())


def test_it_is_never_worse_than_the_best_member() -> None:
    truth = torch.arange(100) % 2
    good = torch.nn.functional.one_hot(truth, 2).double()
    bad = 1 - good
    chosen = choose_average(
        {"bad": bad, "good": good}, lambda m: ACCURACY.compute(m, truth), ACCURACY.better
    )
    assert chosen.weights == {"good": 1.0}
    assert chosen.score == 1.0


def test_of_equal_scores_the_fewest_members_are_kept_and_the_earliest() -> None:
    truth = torch.arange(100) % 2
    same = {name: torch.nn.functional.one_hot(truth, 2).double() for name in "abc"}
    chosen = choose_average(same, lambda m: ACCURACY.compute(m, truth), ACCURACY.better)
    assert chosen.weights == {"a": 1.0}


def test_of_equal_scores_a_chosen_member_is_added_again_before_a_new_one() -> None:
    """After b, a and b again score alike: b is taken, and stays the only member."""
    added: list[float] = []

    def score(mean: Tensor) -> float:
        added.append(float(mean))
        return 1.0 if float(mean) >= 0.5 else 0.0

    members = {"a": torch.zeros(1, 1), "b": torch.ones(1, 1)}
    chosen = choose_average(members, score, lambda one, other: one > other, rounds=3)
    assert chosen.weights == {"b": 1.0}
    # Round by round: a, b; then b again before a; then b again, as the second round added b.
    assert added == pytest.approx([0, 1, 1, 0.5, 1, 2 / 3])


def test_a_score_that_does_not_exist_is_no_better_than_any() -> None:
    guesses = {"lost": torch.full((3, 1), 0.0), "found": torch.ones(3, 1)}

    def score(mean: Tensor) -> float:
        return float(mean.mean()) if (mean > 0).all() else math.nan

    assert choose_average(guesses, score, lambda a, b: RMSE.better(-a, -b)).weights == {
        "found": 1.0
    }


def test_an_average_of_nothing_is_refused() -> None:
    with refused():
        choose_average({}, lambda mean: 0.0, RMSE.better)


def test_few_nodes_are_drawn_in_bags_and_members_far_behind_are_left_out() -> None:
    """Ten members guess; one knows the class of most nodes, and another of the others' half."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(0, 2, (120,), generator=generator)
    truth = torch.eye(2)[labels]
    guesses = {f"guess {n}": torch.rand(120, 2, generator=generator).softmax(1) for n in range(10)}
    wrong = torch.arange(120) % 5 == 0
    good = torch.where(wrong[:, None], 1 - truth, truth) * 0.2 + 0.4

    def score(mean: Tensor, of: Tensor) -> float:
        return float((mean.argmax(1) == of).double().mean())

    shares = {**guesses, "good": good}
    larger = lambda a, b: a > b  # noqa: E731
    plain = choose_robustly(shares, labels, score, larger, bags=0)
    assert len(plain.weights) > 1  # guesses that are right by chance
    near = choose_robustly(shares, labels, score, larger, lambda s, best: best - s < 0.2)
    assert near.weights == {"good": 1.0}
    assert near.score == pytest.approx(0.8)
    bagged = choose_robustly(shares, labels, score, larger)
    assert sum(bagged.weights.values()) == pytest.approx(1)
    assert bagged.weights["good"] == max(bagged.weights.values())
    assert bagged == choose_robustly(shares, labels, score, larger)
    many = {name: found.repeat(20, 1) for name, found in shares.items()}
    assert choose_robustly(many, labels.repeat(20), score, larger) == plain  # enough nodes


@pytest.mark.parametrize("bags", [0, 5])
def test_when_the_time_is_over_the_first_round_is_the_last(bags: int) -> None:
    guesses, truth = numbers(6)
    scored: list[int] = []

    def score(mean: Tensor, labels: Tensor) -> float:
        scored.append(len(labels))
        return RMSE.compute(mean, labels)

    chosen = choose_robustly(guesses, truth, score, RMSE.better, bags=bags, over=lambda: True)
    assert len(chosen.weights) == 1
    assert len(scored) <= 6 + 6 + 1  # members, the first round, and what is chosen
    scored.clear()
    choose_robustly(guesses, truth, score, RMSE.better, bags=20)
    assert 0.5 * evaluations(6, 400) < len(scored) <= evaluations(6, 400) + 6
