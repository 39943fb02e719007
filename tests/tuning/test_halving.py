"""Which trials lie behind: the same that Optuna's own pruner finds, however often it is asked."""

from __future__ import annotations

import random

import pytest

optuna = pytest.importorskip("optuna")

from vrgcn.tuning.halving import Halving  # noqa: E402


def ends(pruner, direction: str, draw: random.Random, *, asked: int = 1) -> list[int]:
    """The epoch that each of some trials came to; each epoch is asked about several times."""
    study = optuna.create_study(direction=direction, pruner=pruner)
    found = []
    for _ in range(12):
        trial, level = study.ask(), draw.random()
        scores = [round(level + 0.3 * draw.random(), 1) for _ in range(12)]  # some are the same
        for epoch in range(1, 13):
            trial.report(scores[epoch - 1], epoch)
            answers = [trial.should_prune() for _ in range(asked)]
            assert len(set(answers)) == 1
            if answers[0]:
                break
        study.tell(trial, scores[epoch - 1])
        found.append(epoch)
    return found


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
@pytest.mark.parametrize("first", [1, 2, 3])
def test_it_decides_as_optuna_does_and_the_same_again(direction: str, first: int) -> None:
    theirs = optuna.pruners.SuccessiveHalvingPruner(min_resource=first, reduction_factor=2)
    wanted = [ends(theirs, direction, random.Random(seed)) for seed in range(5)]
    assert any(len(set(found)) > 2 for found in wanted)
    ours = Halving(first)
    assert [ends(ours, direction, random.Random(seed)) for seed in range(5)] == wanted
    assert [ends(ours, direction, random.Random(seed), asked=3) for seed in range(5)] == wanted


def test_a_score_that_is_no_number_lies_behind_at_the_next_bar() -> None:
    study = optuna.create_study(direction="maximize", pruner=Halving(2))
    trial = study.ask()
    assert not trial.should_prune()
    trial.report(float("nan"), 1)
    assert not trial.should_prune()
    trial.report(float("nan"), 2)
    assert trial.should_prune()


def test_epochs_without_a_score_are_held_against_the_next_that_has_one() -> None:
    study = optuna.create_study(direction="maximize", pruner=Halving(2))
    for score in (0.5, 0.4):
        trial = study.ask()
        trial.report(1.0, 1)
        trial.report(score, 3)  # the bar of 2
        assert trial.should_prune() == (score == 0.4)
