"""Proves Propositions 1 to 3, the table of variances under dropout, and the variance of IS.

Exactly, by listing every sample and every dropout mask; then by Monte Carlo for the real samplers
and for minibatches. A node's own edge is exact, so in every row of the table it adds its dropout
variance with factor 1, and the rest is about the n other neighbours, D of which are drawn: R = n/D.

The paper prints (3 + R) S for the dropout variance of CV. It is (2R - 1) S, and these tests show
that they tell the two apart wherever they differ.
"""

from __future__ import annotations

from itertools import product

import pytest
import torch
from torch import Tensor, nn

from lab.paper import variances
from lab.paper.variances import proposition_1
from tests.theory.graphs import (
    CASES,
    STANDARD_ERRORS,
    WIDTH,
    Case,
    TwoLinear,
    dropout_masks,
    every_sample,
    importance_draws,
    normal,
    outputs,
    real_samples,
    seeded,
    standard_errors_off,
)
from vrgcn.engine.samplers.importance import Importance

every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
with_and_without_own_edge = pytest.mark.parametrize("name", ["directed-gcn", "directed-mean"])


def terms(case: Case, u: int, h: Tensor) -> Tensor:
    """(neighbours, width): x_v = P_uv h_v of the others."""
    neighbours = case.others[u].nonzero()[:, 0]
    return case.others[u, neighbours, None] * h[neighbours]


def variance(estimates: Tensor, probability: Tensor) -> Tensor:
    """Return the variance over (samples, masks), with equally likely samples and the masks'
    probabilities."""
    mean = estimates.mean(0) @ probability
    return (estimates - mean).square().mean(0) @ probability


def table_of_variances(
    case: Case, u: int, D: int, mean: Tensor, past: Tensor, dropout: Tensor
) -> dict[str, Tensor]:
    """`variances.table_of_variances` for node u, sampling and dropout together: (width,).

    mean, past: (nodes, width), E h and E h̄; dropout: (nodes, width), Var h = Var h̄
    """
    others = case.others[u].nonzero()[:, 0]
    rows = variances.table_of_variances(
        float(case.matrix[u, u]),
        case.others[u, others],
        D,
        mean[others],
        past[others],
        torch.cat([dropout[u : u + 1], dropout[others]]),
    )
    return {name: row.total for name, row in rows.items()}


# Exactly, over every sample and every mask.


@every_case
def test_proposition_1_is_the_variance_of_ns_and_cv(case: Case) -> None:
    h, past = normal(8, WIDTH, seed=30), normal(8, WIDTH, seed=31)
    for u, D in case.targets_and_fanouts:
        outcomes = every_sample(case.P, u, D)
        ns, cv = outcomes.ns(h), outcomes.cv(h, past)
        close = {"rtol": 1e-9, "atol": 1e-12}
        torch.testing.assert_close(
            ns.var(0, correction=0), proposition_1(terms(case, u, h), D), **close
        )
        torch.testing.assert_close(
            cv.var(0, correction=0), proposition_1(terms(case, u, h - past), D), **close
        )


@every_case
def test_with_fresh_histories_cv_has_no_variance(case: Case) -> None:
    h = normal(8, WIDTH, seed=30)
    for u, D in case.targets_and_fanouts:
        cv = every_sample(case.P, u, D).cv(h, h.clone())
        torch.testing.assert_close(cv, (case.matrix[u] @ h).expand_as(cv))


@every_case
def test_proposition_2_sampling_uncorrelated_terms_multiplies_their_variance_by_r(
    case: Case,
) -> None:
    # Signs whose product is 1: any two are independent, all together are not.
    signs = torch.tensor(list(product([-1.0, 1.0], repeat=8)), dtype=torch.float64)
    signs = signs[signs.prod(1) == 1].T
    equal = torch.full((128,), 1 / 128, dtype=torch.float64)
    size = normal(8, 1, seed=30)
    for u, D in case.targets_and_fanouts:
        R = case.degrees[u] / D
        own = case.matrix[u, u].square() * size[u, 0].square()
        S = terms(case, u, size).square().sum()
        outcomes = every_sample(case.P, u, D)
        torch.testing.assert_close(variance(outcomes.ns(size * signs), equal), own + R * S)
        # Hence √R in the residual of cvd: it leaves the variance as it is.
        torch.testing.assert_close(variance(outcomes.residual(size * signs), equal), own + S)


@with_and_without_own_edge
def test_proposition_3_the_variances_of_sampling_and_dropout_add(name: str) -> None:
    case = CASES[name]
    masks, probability = dropout_masks(8, keep=0.75)
    mean, past = normal(8, 1, seed=30).expand(8, 256), normal(8, 1, seed=31).expand(8, 256)
    h = mean * masks
    for u, D in case.targets_and_fanouts:
        outcomes = every_sample(case.P, u, D)
        for together, sampling, dropout in [
            (outcomes.ns(h), outcomes.ns(mean), outcomes.ns(h - mean)),
            (outcomes.cv(h, past), outcomes.cv(mean, past), outcomes.ns(h - mean)),
            (outcomes.cvd(h, mean, past), outcomes.cv(mean, past), outcomes.residual(h - mean)),
        ]:
            parts = variance(sampling, probability) + variance(dropout, probability)
            torch.testing.assert_close(variance(together, probability), parts)


@with_and_without_own_edge
@pytest.mark.parametrize("u", [0, 1, 2])
def test_the_table_of_variances_holds_over_every_sample_and_mask(name: str, u: int) -> None:
    case, keep = CASES[name], 0.75
    mean, past = normal(8, 1, seed=30), normal(8, 1, seed=31)
    row = case.matrix[u].nonzero()[:, 0]
    masks, probability = dropout_masks(len(row), keep)
    noise = torch.zeros(8, len(probability), dtype=torch.float64)
    noise[row] = mean[row] * (masks - 1)  # mean + noise is what dropout leaves of the mean
    # Every pair of masks, one for h and one for the h̄ of an earlier step, with as much noise.
    pairs = torch.cartesian_prod(*[torch.arange(len(probability))] * 2).T
    h, old = mean + noise[:, pairs[0]], past + noise[:, pairs[1]]
    both = probability[pairs].prod(0)
    mu, mu_old = mean.expand_as(h), past.expand_as(h)

    n = case.degrees[u]
    for D in range(1, n + 1):
        expected = table_of_variances(case, u, D, mean, past, mean.square() * (1 - keep) / keep)
        outcomes = every_sample(case.P, u, D)
        measured = {
            "exact": variance(every_sample(case.P, u, n).ns(h), both),
            "ns": variance(outcomes.ns(h), both),
            "cv": variance(outcomes.cv(h, old), both),
            "cvd": variance(outcomes.cvd(h, mu, mu_old), both),
        }
        for estimator, value in measured.items():
            torch.testing.assert_close(value, expected[estimator][0], msg=estimator)
        # 3 + R and 2R - 1 are the same number at R = 4, and there alone.
        agrees = bool(torch.isclose(measured["cv"], expected["cv as printed"][0]))
        assert agrees == (n == 4 * D)


# Checked by Monte Carlo: the squared distance from P h has the variance as its mean. With 20,000
# draws its standard error is at most 1.1% of it (measured), so by `graphs.standard_errors_off` a
# variance that is wrong by 11% is missed with probability 3e-7.


@with_and_without_own_edge
def test_proposition_1_is_the_variance_of_the_real_sampler(name: str) -> None:
    case = CASES[name]
    h, past = normal(8, WIDTH, seed=30), normal(8, WIDTH, seed=31)
    for u, D in case.targets_and_fanouts:
        outcomes = real_samples(case.P, u, D, 20_000, seed=10 * u + D)
        for estimates, x in ((outcomes.ns(h), h), (outcomes.cv(h, past), h - past)):
            squares = (estimates - case.matrix[u] @ h).square()
            expected = proposition_1(terms(case, u, x), D)
            assert standard_errors_off(squares, expected) < STANDARD_ERRORS


@with_and_without_own_edge
@pytest.mark.parametrize("D", [1, 2, 3])
def test_the_table_of_variances_holds_for_minibatches(name: str, D: int) -> None:
    case, model, copies = CASES[name], TwoLinear(dropout=0.25), 20_000
    nn.init.eye_(model.weight)
    mean, past = case.matrix @ case.graph.features, normal(8, WIDTH, seed=31)
    masks = torch.rand(copies, 8, WIDTH, generator=seeded(32)).gt(0.25) / 0.75
    histories = {"exact": None, "ns": None, "cv": past + mean * (masks - 1), "cvd": past}
    table = [
        table_of_variances(case, u, max(1, min(D, n)), mean, past, mean.square() / 3)
        for u, n in enumerate(case.degrees)
    ]
    for estimator, history in histories.items():
        estimates = outputs(
            model, case.graph, copies, history, estimator=estimator, fanout=D,
            propagation=name.split("-")[1],
        )  # fmt: skip
        squares = (estimates - case.matrix @ mean).square()
        expected = torch.stack([row[estimator] for row in table])
        # Sums of single-precision histories leave up to 1e-6.
        assert standard_errors_off(squares, expected, rounding=1e-6) < STANDARD_ERRORS
        if estimator == "cv":
            printed = torch.stack([row["cv as printed"] for row in table])
            assert standard_errors_off(squares, printed, rounding=1e-6) > 4 * STANDARD_ERRORS


# Importance sampling.


def importance_variance(case: Case, h: Tensor, size: int) -> Tensor:
    """(nodes, width): (1/S) (sum_v (P_uv h_v)^2 / q_v - (P h)_u^2), own edges among them."""
    q = case.matrix.square().sum(0) / case.matrix.square().sum()
    drawn = q > 0
    second = case.matrix[:, drawn].square() @ (h[drawn].square() / q[drawn, None])
    return (second - (case.matrix @ h).square()) / size


@pytest.mark.parametrize("name", ["directed-gcn", "directed-mean", "undirected-gcn"])
def test_the_variance_of_is_holds_over_every_outcome(name: str) -> None:
    case, h = CASES[name], normal(8, WIDTH, seed=30)
    q = Importance(1).distribution(case.P).probability
    nodes = q.nonzero()[:, 0].tolist()
    # The real sampler's answer to each node that it can draw, whenever that turned up.
    answers = {
        int(matrix.abs().sum(0).argmax()): matrix @ h
        for matrix in importance_draws(case, size=1, count=1000, seed=35)
    }
    assert sorted(answers) == nodes
    exact = case.matrix @ h
    once = sum(q[v] * (answers[v] - exact).square() for v in nodes)
    torch.testing.assert_close(once, importance_variance(case, h, 1))
    twice = sum(
        q[v] * q[w] * ((answers[v] + answers[w]) / 2 - exact).square()
        for v, w in product(nodes, nodes)
    )
    torch.testing.assert_close(twice, importance_variance(case, h, 2))


@pytest.mark.parametrize(("name", "size"), [("directed-gcn", 3), ("directed-mean", 6)])
def test_the_variance_of_is_holds_for_the_real_sampler(name: str, size: int) -> None:
    # 3000 draws of long tails: the standard error is at most 6% of the variance (measured), so one
    # that is wrong by 60% is missed with probability 3e-7.
    case, h = CASES[name], normal(8, WIDTH, seed=30)
    squares = (importance_draws(case, size, count=3000, seed=36) @ h - case.matrix @ h).square()
    assert standard_errors_off(squares, importance_variance(case, h, size)) < STANDARD_ERRORS
