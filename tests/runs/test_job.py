"""A job: everything that a run needs, each built once."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from tests.runs.test_fit import graph
from vrgcn import GraphSAGE, TrainConfig, fit
from vrgcn.costs.epoch_cost import epoch_costs
from vrgcn.engine import setup
from vrgcn.runs.job import prepare
from vrgcn.training.listener import Callbacks

CONFIG = TrainConfig(epochs=2, batch_size=16, diagnostics=0, seed=3)


def model(seed: int = 0) -> GraphSAGE:
    torch.manual_seed(seed)
    return GraphSAGE(graph().num_features, 8, graph().num_classes, dropout=0.3)


def test_a_model_is_looked_at_once_in_each_mode_before_the_first_step(monkeypatch) -> None:
    traced, looked = setup.trace, []

    def trace(*given, training: bool, **named):
        looked.append(training)
        return traced(*given, training=training, **named)

    monkeypatch.setattr(setup, "trace", trace)
    before_first: list[int] = []
    job = prepare(model(), graph(), CONFIG)
    assert job.choice is not None
    job.costs(["exact", "ns", job.config.estimator])
    job.train(Callbacks(on_batch=lambda batch: before_first.append(len(looked))))
    assert before_first[0] == 2
    assert looked == [True, False]


def test_costs_that_the_choice_was_made_by_are_those_of_the_estimators() -> None:
    job = prepare(model(), graph(), CONFIG)
    names = ["exact", "two-way", "ns"]
    plain = epoch_costs(model(), graph(), replace(CONFIG, seed=0), names[:2])
    costs = job.costs(names)
    assert list(costs) == names
    assert {name: costs[name] for name in plain} == plain


def test_another_seed_shares_what_does_not_depend_on_it() -> None:
    first = prepare(model(0), graph(), CONFIG)
    second = first.with_model(model(1), seed=4)
    assert second.setup is first.setup
    assert first.train().curve
    shared = [point.loss for point in second.train().curve]
    alone = fit(model(1), graph(), replace(CONFIG, seed=4, estimator=first.config.estimator))
    assert shared == [point.loss for point in alone.curve]


@pytest.mark.parametrize("estimator", ["cv", "two-way"])
def test_an_estimator_that_was_asked_for_is_no_choice(estimator: str) -> None:
    job = prepare(model(), graph(), replace(CONFIG, estimator=estimator))
    assert (job.choice, job.config.estimator) == (None, estimator)
