"""Repeated passes: they find the mean and the noise of a gradient, and leave no trace."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from tests.diagnostics.models import Normed
from tests.messages import refused
from tests.theory.problems import double_minibatches, exact_pass, gcn, random_graph
from vrgcn.targets.opening import find_target
from vrgcn.training.gradients import gradient_moments
from vrgcn.training.moments import (
    Moments,
    deviation,
    mean_absolute_deviation,
    noise_scale,
)
from vrgcn.training.objective import loss_per_node

GRAPH = random_graph()
TARGET = find_target(GRAPH)
NODES = torch.arange(12)


def moments(estimator: str, *, passes: int = 150, model=None, warm=False, **given) -> Moments:
    model = model or gcn()
    batches = double_minibatches(model, GRAPH, estimator=estimator, **given)
    if warm:
        batches.warm_start(model)
    return gradient_moments(model, batches, NODES, TARGET, passes=passes)


def dense_gradient(model: nn.Module) -> list[torch.Tensor]:
    output = exact_pass(model, GRAPH)[-1]
    loss = loss_per_node(output[NODES], GRAPH.labels[NODES]).mean()
    return list(torch.autograd.grad(loss, list(model.parameters())))


def of(*draws: list[list[float]]) -> Moments:
    filled = Moments()
    for draw in draws:
        filled.add([torch.tensor(part) for part in draw])
    return filled


def test_moments_are_those_of_all_draws():
    draws = torch.randn(7, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    filled = Moments()
    for draw in draws:
        filled.add([draw[:2], draw[2:]])
    torch.testing.assert_close(torch.cat(filled.mean), draws.mean(0))
    torch.testing.assert_close(torch.cat(filled.variance), draws.var(0))
    torch.testing.assert_close(torch.cat(filled.part(1).variance), draws.var(0)[2:])


def test_deviations_are_their_formulas():
    # means (3, 0) and (4,), variances (2, 0) and (2,) against (3, 4) and (0,): norm 5, mean 7/3
    estimate = of([[2.0, 0.0], [3.0]], [[4.0, 0.0], [5.0]])
    reference = of([[3.0, 4.0], [0.0]])
    found = deviation(estimate, reference)
    assert found.bias == pytest.approx(math.sqrt(16 + 16 - 4 / 2) / 5)
    assert found.floor == pytest.approx(math.sqrt(3 * math.sqrt(2) * 4 / 2) / 5)
    assert found.std == pytest.approx(math.sqrt(4) / 5)
    assert found.error == pytest.approx(math.hypot(found.bias, found.std))
    paper = mean_absolute_deviation(estimate, reference)
    assert paper.bias == pytest.approx((0 + 4 + 4) / 7)
    assert paper.std == pytest.approx((2 * math.sqrt(2)) / 7)
    assert paper.floor == pytest.approx(math.sqrt(2 / math.pi) * 2 / 7)
    assert noise_scale(estimate) == pytest.approx(4 / (25 - 4 / 2))


def normal(entries: int, passes: int, seed: int, shift: float = 0.0) -> Moments:
    """Draws of mean `shift` and covariance I, in two tensors."""
    generator = torch.Generator().manual_seed(seed)
    filled = Moments()
    for draw in torch.randn(passes, entries, generator=generator) + shift:
        filled.add([draw[: entries // 2], draw[entries // 2 :]])
    return filled


def test_squared_covariance_is_told_from_the_passes():
    assert normal(100, 400, 0).squared_covariance == pytest.approx(100, rel=0.3)
    assert normal(100, 400, 0).part(1).squared_covariance == pytest.approx(50, rel=0.3)
    assert normal(1, 400, 0).squared_covariance == pytest.approx(1, rel=0.3)
    assert normal(100, 10, 0).squared_covariance == pytest.approx(100**2, rel=0.3)  # too few


@pytest.mark.parametrize("entries", [1, 4, 200])
def test_noise_alone_is_seldom_taken_for_a_bias(entries):
    exact = of([[3.0] * (entries // 2), [3.0] * (entries - entries // 2)])
    found = [deviation(normal(entries, 30, seed, 3.0), exact) for seed in range(150)]
    # One in 40 at most, here 150 times: more than 10 have probability 0.001.
    assert sum(one.biased for one in found) <= 10


def test_a_bias_is_seen_where_it_is_spread_over_many_entries():
    exact = of([[3.0] * 100, [3.0] * 100])
    found = [deviation(normal(200, 30, seed, 3.15), exact) for seed in range(20)]
    assert all(one.biased for one in found)
    assert sum(one.bias for one in found) / 20 == pytest.approx(0.05, rel=0.1)


def test_noise_scale_stays_finite_where_noise_drowns_the_mean():
    assert noise_scale(of([[1.0]], [[-0.9]])) == pytest.approx(1.805 / (0.05**2 / 2))
    assert noise_scale(of([[0.0]], [[0.0]])) == 0


def test_exact_gradient_is_the_dense_formulas_and_does_not_vary():
    found = moments("exact", passes=3)
    for mean, variance, dense in zip(
        found.mean, found.variance, dense_gradient(gcn()), strict=True
    ):
        torch.testing.assert_close(mean, dense)
        assert variance.max() < 1e-25


def test_gradient_of_chosen_parameters_is_part_of_all():
    model = gcn()
    batches = double_minibatches(model, GRAPH, estimator="ns")
    some = gradient_moments(
        model, batches, NODES, TARGET, passes=4, parameters=[model.layers[1].linears[0].weight]
    )
    every = gradient_moments(model, batches, NODES, TARGET, passes=4)
    assert torch.equal(some.mean[0], every.mean[1])
    assert torch.equal(some.variance[0], every.part(1).variance[0])


def test_cv_has_no_noise_in_its_values_after_a_warm_start_so_less_in_its_gradient_than_ns():
    exact, ns, cv = moments("exact", passes=1), moments("ns"), moments("cv", warm=True)
    assert not deviation(cv, exact).biased
    assert 0 < deviation(cv, exact).std < 0.9 * deviation(ns, exact).std
    # The last layer's gradient depends on values alone: exact, and free of noise.
    last = deviation(cv.part(1), exact.part(1))
    assert last.error < 1e-12
    assert deviation(ns.part(1), exact.part(1)).std > 0.1


def test_stale_histories_bias_the_gradient_of_history_without_noise():
    exact, cold = moments("exact", passes=1), moments("history", passes=3)
    found = deviation(cold, exact)
    assert found.biased
    assert found.bias > 0.2
    assert found.std == 0
    warm = moments("history", passes=3, warm=True)
    assert deviation(warm.part(1), exact.part(1)).error < 1e-12


@pytest.mark.parametrize("estimator", ["exact", "ns", "is", "cv", "cvd", "history"])
def test_passes_leave_no_trace(estimator):
    model = Normed().eval()
    batches = double_minibatches(model, GRAPH, estimator=estimator, batch_size=20)
    with torch.no_grad():
        model.train()
        for batch in batches:
            batch.run(model)
            batch.commit()
        model.eval()
    state = {**model.state_dict(), **batches.histories.state_dict()}
    before = {name: value.clone() for name, value in state.items()}
    random = torch.get_rng_state(), batches.generator.get_state()
    gradient_moments(model, batches, NODES, TARGET, passes=2)
    for name, value in before.items():
        assert torch.equal(state[name], value), name
    assert torch.equal(torch.get_rng_state(), random[0])
    assert torch.equal(batches.generator.get_state(), random[1])
    assert batches.step == len(batches)
    assert not any(module.training for module in model.modules())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_dropout_can_be_left_out():
    model = Normed()
    batches = double_minibatches(model, GRAPH, estimator="exact")
    noisy = gradient_moments(model, batches, NODES, TARGET, passes=3)
    still = gradient_moments(model, batches, NODES, TARGET, passes=3, dropout=False)
    assert noise_scale(noisy) > 1e-3
    assert noise_scale(still) == 0


def test_a_batch_without_training_nodes_is_refused():
    model, data = gcn(), random_graph().replace(train=torch.arange(30, 60))
    batches = double_minibatches(model, data, nodes="all")
    with refused():
        gradient_moments(model, batches, NODES, TARGET, passes=1)
