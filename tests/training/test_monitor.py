"""Measurements beside the training: they change nothing in it, cost little, and are right."""

from __future__ import annotations

import json
import math

import pytest
import torch

from tests.diagnostics.models import Normed
from tests.messages import refused
from tests.theory.problems import double_minibatches, gcn, random_graph
from vrgcn import ESTIMATORS, Graph, TrainConfig, fit
from vrgcn.engine.batch import Batch
from vrgcn.engine.visits import all_visits
from vrgcn.targets.opening import find_target
from vrgcn.training import monitor
from vrgcn.training.clock import Clock
from vrgcn.training.gradients import gradient_moments
from vrgcn.training.moments import noise_scale
from vrgcn.training.monitor import BUDGET, PASSES, Monitor, read

GRAPH = random_graph()
TARGET = find_target(GRAPH)


def train(network, graph: Graph = GRAPH, **given):
    settings = {"epochs": 4, "batch_size": 11, "select": "last", "evaluate_every": 4, **given}
    return fit(network, graph, TrainConfig(**settings))


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_training_is_the_same_to_the_last_bit_with_and_without_diagnostics(estimator, optimizer):
    given = {"estimator": estimator, "optimizer": optimizer}
    plain = train(Normed(), diagnostics=0, **given)
    watched = train(Normed(), diagnostics=1, **given)
    for name, value in plain.weights.items():
        assert torch.equal(watched.weights[name], value), name
    assert [p.loss for p in plain.curve] == [p.loss for p in watched.curve]
    assert [p.age for p in plain.curve] == [p.age for p in watched.curve]
    assert (plain.val, plain.test) == (watched.val, watched.test)


def test_points_carry_what_was_measured_every_few_epochs():
    curve = train(gcn(dropout=0.5), estimator="cvd", diagnostics=2, epochs=5).curve
    assert [point.epoch for point in curve if point.gradient_noise is not None] == [2, 4]
    assert [point.epoch for point in curve if point.staleness is not None] == [2, 4]
    assert all(0 < p.gradient_noise < 100 and 0 < p.staleness < 2 for p in curve[1::2])
    json.dumps([point.as_dict() for point in curve], allow_nan=False)
    again = train(gcn(dropout=0.5), estimator="cvd", diagnostics=4, epochs=5).curve
    assert again[3].gradient_noise == curve[3].gradient_noise


def test_without_histories_there_is_no_staleness_and_without_noise_none():
    curve = train(gcn(), estimator="exact", diagnostics=1).curve
    assert {(p.staleness, p.gradient_noise < 1e-25) for p in curve} == {(None, True)}
    assert train(gcn(), estimator="ns", diagnostics=1).curve[-1].gradient_noise > 0.01


def test_seconds_of_diagnostics_are_counted_apart(monkeypatch):
    now = 0.0

    def later(*args: object) -> monitor.Reading:
        nonlocal now
        now += 1000.0
        return monitor.Reading()

    monkeypatch.setattr(monitor, "read", later)
    monkeypatch.setattr(Clock, "now", staticmethod(lambda: now))
    result = train(gcn(), diagnostics=2)
    assert result.diagnostics_seconds == 2000.0
    assert result.seconds == result.evaluation_seconds == 0


@pytest.mark.parametrize(("steps", "every"), [(1, 267), (24, 12), (298, 1), (10_000, 1)])
def test_the_default_keeps_within_its_budget_of_passes(steps, every):
    batches = double_minibatches(gcn(), GRAPH)
    batches.visits, batches.batch_size = all_visits(torch.arange(steps)), 1
    assert Monitor(gcn(), batches, None, 0, TARGET).every == every
    assert PASSES / (every * steps) <= BUDGET < 0.02


def test_the_default_measures_as_often_as_it_may(monkeypatch):
    runs = []
    run = Batch.run
    monkeypatch.setattr(Batch, "run", lambda self, model: runs.append(self) or run(self, model))
    train(gcn(), batch_size=1, epochs=5, diagnostics=0)
    steps = len(runs)
    runs.clear()
    result = train(gcn(), batch_size=1, epochs=5)
    assert [p.epoch for p in result.curve if p.gradient_noise is not None] == [5]
    assert len(runs) - steps == PASSES
    assert (len(runs) - steps) / steps <= BUDGET


def test_staleness_is_the_relative_distance_of_the_tables_from_what_would_be_written():
    model = gcn()
    batches = double_minibatches(model, GRAPH, estimator="cv", batch_size=20)
    assert read(model, batches, 0, TARGET).staleness == pytest.approx(1)  # tables of zeros
    batches.warm_start(model)
    assert read(model, batches, 0, TARGET).staleness < 1e-12
    with torch.no_grad():  # relu is homogeneous: twice the weights, twice the activations
        model.layers[0].linears[0].weight.mul_(2)
    assert read(model, batches, 0, TARGET).staleness == pytest.approx(0.5)


def test_staleness_of_cvd_is_that_of_the_activations_without_dropout():
    model = gcn(dropout=0.5)
    batches = double_minibatches(model, GRAPH, estimator="cvd", batch_size=20)
    batches.warm_start(model)
    assert read(model, batches, 0, TARGET).staleness < 1e-12
    dropped = double_minibatches(model, GRAPH, estimator="cv", batch_size=20)
    dropped.warm_start(model)
    assert read(model, dropped, 0, TARGET).staleness > 0.1


def test_gradient_noise_of_a_few_passes_agrees_with_that_of_many():
    model = gcn(dropout=0.3)
    batches = double_minibatches(model, GRAPH, estimator="ns", batch_size=60)
    few = torch.tensor([read(model, batches, seed, TARGET).gradient_noise for seed in range(30)])
    many = gradient_moments(model, batches, torch.arange(60), TARGET, passes=200)
    assert few.median() == pytest.approx(noise_scale(many), rel=0.35)


def test_a_minibatch_without_training_nodes_tells_staleness_alone():
    data = random_graph().replace(train=torch.arange(1))
    model = gcn()
    batches = double_minibatches(model, data, estimator="cv", nodes="all", batch_size=2)
    readings = [read(model, batches, seed, find_target(data)) for seed in range(20)]
    assert any(reading.gradient_noise is None for reading in readings)
    assert all(reading.staleness is not None for reading in readings)


def test_what_is_not_finite_is_left_out():
    model = gcn()
    batches = double_minibatches(model, GRAPH, estimator="cv")
    with torch.no_grad():
        model.layers[0].linears[0].weight.fill_(math.inf)
    assert read(model, batches, 0, TARGET) == monitor.Reading(None, None)


def test_a_negative_interval_is_refused():
    with refused():
        TrainConfig(diagnostics=-1)


def test_fit_takes_the_interval_itself_too():
    curve = fit(gcn(), GRAPH, TrainConfig(epochs=4, batch_size=11), diagnostics=2).curve
    assert [point.epoch for point in curve if point.gradient_noise is not None] == [2, 4]


def test_a_seed_may_be_as_large_as_the_time_of_a_day():
    """Seeds such as 20261117131500 work; the seeds of measurements are larger still."""
    for seed in (20261117131500, 2**63 - 1):
        curve = train(gcn(), estimator="ns", epochs=1, diagnostics=1, seed=seed).curve
        assert curve[0].gradient_noise is not None
    with refused():
        TrainConfig(seed=2**63)
