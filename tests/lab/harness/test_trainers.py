"""A trainer without an end."""

from __future__ import annotations

import pytest

from lab.harness.trainers import EndlessTrainer
from vrgcn.runs.fit import fit
from vrgcn.training.config import TrainConfig


def config(**changes: object) -> TrainConfig:
    return TrainConfig(estimator="cvd", batch_size=100, **changes)


def test_it_trains_as_fit_does_and_past_its_epochs(bench):
    model, whole = bench.architecture.model(bench.graph), bench.architecture.model(bench.graph)
    fit(whole, bench.graph, config(epochs=2, select="last", diagnostics=0, average_weights=False))
    endless = EndlessTrainer(model, bench.graph, config(epochs=1))
    taken = [endless.run(4), endless.run(8)]
    assert endless.steps_per_epoch == 6
    assert endless.epochs == 2
    assert sum(taken) == pytest.approx(endless.seconds)
    assert endless.diverged is None
    for mine, theirs in zip(model.parameters(), whole.parameters(), strict=True):
        assert mine.equal(theirs)


def test_it_says_why_it_diverged_and_counts_the_seconds_until_then(bench):
    model = bench.architecture.model(bench.graph)
    wild = EndlessTrainer(model, bench.graph, config(learning_rate=1e30))
    assert wild.run(60) == wild.seconds > 0
    assert "became" in wild.diverged
    assert wild.epochs < 10
