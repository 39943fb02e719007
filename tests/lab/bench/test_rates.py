"""Time to accuracy at the best learning rate."""

from __future__ import annotations

from lab.bench.rates import Outcome, chosen, race_rates, summary
from lab.harness.algorithms import Recipe
from lab.harness.race import Runner, Validation


def test_a_race_counts_as_won_when_every_run_was():
    runs = [Outcome(True, 1.0, 0.5, 0.97), Outcome(False, 9.0, 4.0, 0.9)]
    assert not summary(runs)["reached"]
    assert summary(runs)["seconds"] == 5.0


def test_an_outcome_is_up_to_the_target_or_to_the_end():
    runner = Runner(None, 4, 2, 0, val=[0.5, 0.9, 0.8], seconds=[1.0, 2.0, 4.0])
    assert Outcome.of(runner, 0.7) == Outcome(True, 3.0, 1.0, 0.9)
    assert Outcome.of(runner, 0.95) == Outcome(False, 7.0, 1.5, 0.9)


def test_the_rate_that_gets_there_soonest_is_chosen(bench):
    recipes = {"two-way": Recipe("two-way", rates=(1e-9, 0.01))}
    targets = (0.5, 0.6)
    runners = race_rates(
        recipes, bench.architecture, Validation(bench.graph),
        targets=targets, limit=lambda _: 3, parts=2, seed=0, rounds=range(6),
    )  # fmt: skip
    found = chosen("two-way", [runners], targets)
    assert found["rate"] == 0.01
    assert found["reached"]
    assert not any(Outcome.of(runners["two-way", 1e-9], target).reached for target in targets)
    assert len(runners["two-way", 1e-9].seconds) == 6
    assert found["later"]["0.6"]["seconds"] >= found["seconds"] > 0
