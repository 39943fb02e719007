"""Proves that each estimator's mean is P h.

First exactly: the estimators' own functions over every equally likely sample (and every dropout
mask), on weighted, directed, undirected graphs with self-loops and isolated nodes, for every
fan-out. Then that the real samplers draw those samples with those probabilities. Then Monte Carlo
through plans and minibatches. Two known biased rules must fail the very same checks.

Monte Carlo tests fix their seeds; `graphs.standard_errors_off` states their tolerance and power.
"""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations_with_replacement, permutations

import pytest
import torch
from torch import Tensor

from tests.theory.graphs import (
    CASES,
    STANDARD_ERRORS,
    WIDTH,
    Case,
    chi_square_p,
    dropout_masks,
    every_sample,
    importance_draws,
    normal,
    per_target,
    real_samples,
    seeded,
    standard_errors_off,
)
from vrgcn.engine.formulas import sampled
from vrgcn.engine.plan import Hop
from vrgcn.engine.samplers.full import Full
from vrgcn.engine.samplers.importance import Importance
from vrgcn.engine.samplers.uniform import uniform
from vrgcn.graph.graph import Graph
from vrgcn.graph.propagation import Propagation, gcn

SINGLE = 1e-6  # rounding of sums of histories in single precision
every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())


# Exactly, over every sample.


@every_case
def test_ns_and_cv_average_to_p_h_over_all_samples_whatever_the_history(case: Case) -> None:
    h, past = normal(8, WIDTH, seed=10), 5 * normal(8, WIDTH, seed=11)
    for u, fanout in case.targets_and_fanouts:
        outcomes = every_sample(case.P, u, fanout)
        for estimates in (outcomes.ns(h), outcomes.cv(h, past)):
            torch.testing.assert_close(estimates.mean(0), case.matrix[u] @ h)


@every_case
def test_cvd_averages_over_samples_to_p_mean_and_the_residual_by_root_r(case: Case) -> None:
    h, mean, past = (normal(8, WIDTH, seed=seed) for seed in (10, 11, 12))
    for u, fanout in case.targets_and_fanouts:
        root = math.sqrt(case.degrees[u] / fanout)
        dropped = case.others[u] @ (h - mean) / root + case.matrix[u, u] * (h - mean)[u]
        estimates = every_sample(case.P, u, fanout).cvd(h, mean, past)
        torch.testing.assert_close(estimates.mean(0), case.matrix[u] @ mean + dropped)


@every_case
def test_ns_cv_and_cvd_average_to_p_mean_over_all_samples_and_dropout_masks(case: Case) -> None:
    mean, past = normal(8, 1, seed=11), normal(8, 1, seed=12)
    masks, probability = dropout_masks(8, keep=0.75)
    h, mu, past = mean * masks, mean.expand(-1, 256), past.expand(-1, 256)
    for u, fanout in case.targets_and_fanouts:
        outcomes = every_sample(case.P, u, fanout)
        for estimates in (outcomes.ns(h), outcomes.cv(h, past), outcomes.cvd(h, mu, past)):
            torch.testing.assert_close(estimates.mean(0) @ probability, (case.matrix[u] @ mean)[0])


@every_case
def test_with_fanout_0_ns_keeps_the_own_edge_and_cv_the_history(case: Case) -> None:
    h, past = normal(8, WIDTH, seed=10), normal(8, WIDTH, seed=11)
    for u in case.nodes:
        none = every_sample(case.P, u, 0)
        own, average = case.matrix[u, u] * h[u], case.others[u]
        torch.testing.assert_close(none.ns(h), own[None])
        torch.testing.assert_close(none.cv(h, past), (own + average @ past)[None])
        torch.testing.assert_close(none.cv(h, h.clone()), (case.matrix[u] @ h)[None])


# The real samplers.


@every_case
def test_uniform_draws_every_set_of_neighbours_equally_often(case: Case) -> None:
    # 20,000 draws of at most 20 sets; tolerance p > 1e-5 for each comparison. A set drawn a third
    # too often is missed with probability below 1e-4.
    draws = 20_000
    for u, degree in enumerate(case.degrees):
        for fanout in range(1, degree + 1):
            hop = real_samples(case.P, u, fanout, draws, seed=100 * u + fanout).hop
            assert (hop.edges.counts == fanout).all()
            nodes = (hop.edges.indices - draws).view(draws, fanout).sort(1).values
            assert (nodes.diff(dim=1) > 0).all(), "a neighbour was drawn twice"
            counts = torch.unique(nodes, dim=0, return_counts=True)[1].double()
            assert len(counts) == math.comb(degree, fanout)
            if len(counts) > 1:
                assert chi_square_p(counts, torch.full_like(counts, 1 / len(counts))) > 1e-5


@every_case
def test_uniform_keeps_own_edges_entries_of_p_and_r_exact(case: Case) -> None:
    nodes = torch.tensor([7, 0, 4, 2, 5, 1, 6, 3])
    degrees = torch.tensor(case.degrees)[nodes]
    for fanout in range(9):
        sample = uniform(case.P, nodes, fanout, seeded(fanout))
        count = degrees.clamp(max=fanout)
        own = per_target(sample.own, len(nodes))
        torch.testing.assert_close(own, case.matrix.diag()[nodes])
        assert torch.equal(sample.edges.counts, count)
        entries = case.others[nodes[sample.edges.row_of_entry], sample.edges.indices]
        torch.testing.assert_close(sample.edges.weights(torch.float64), entries)
        drawn = count > 0
        assert torch.equal(sample.scale[drawn], (degrees / count.double())[drawn])


@every_case
def test_exact_and_uniform_with_all_neighbours_are_p_h(case: Case) -> None:
    h, nodes = normal(8, WIDTH, seed=10), torch.arange(8)
    samples = [Full().sample(case.P, nodes, 0, seeded(0))]
    samples += [uniform(case.P, nodes, fanout, seeded(0)) for fanout in (6, 7, 1000)]
    for sample in samples:
        hop = Hop(sample.own, sample.edges, sample.scale, None)
        torch.testing.assert_close(sampled(hop, h), case.matrix @ h)


def test_uniform_draws_for_two_targets_independently() -> None:
    # 15 x 6 pairs of sets, 40,000 draws; tolerance p > 1e-5. Rows that share their random numbers
    # would leave most of the 90 pairs empty.
    P, draws = CASES["directed-mean"].P, 40_000
    edges = uniform(P, torch.tensor([0, 2]).repeat(draws), 2, seeded(3)).edges
    pairs = torch.unique(edges.indices.view(draws, 2, 2).sort(2).values.view(draws, 4), dim=0,
                         return_counts=True)[1].double()  # fmt: skip
    assert len(pairs) == 15 * 6
    assert chi_square_p(pairs, torch.full_like(pairs, 1 / 90)) > 1e-5


def test_uniform_draws_all_pairs_of_many_neighbours_equally_often() -> None:
    leaves, fanout, draws = 30, 11, 5000
    star = Graph([[*range(1, leaves + 1)], [0] * leaves], normal(leaves + 1, 1, seed=0))
    edges = uniform(gcn(star), torch.zeros(draws, dtype=torch.int64), fanout, seeded(4)).edges
    drawn = torch.zeros(draws, leaves + 1, dtype=torch.float64)
    drawn[edges.row_of_entry, edges.indices] = 1
    single = torch.tensor(fanout / leaves)
    double = torch.tensor(fanout * (fanout - 1) / (leaves * (leaves - 1)))
    first, second = torch.triu_indices(leaves, leaves, offset=1) + 1
    assert standard_errors_off(drawn[:, 1:], single) < STANDARD_ERRORS
    assert standard_errors_off(drawn[:, first] * drawn[:, second], double) < STANDARD_ERRORS


@pytest.mark.parametrize(
    ("name", "size"), [("directed-gcn", 1), ("directed-mean", 1), ("undirected-gcn", 2)]
)
def test_is_averages_to_p_over_every_outcome_of_its_probabilities(name: str, size: int) -> None:
    # Every multiset of nodes turns up among the draws (the rarest is expected 20 times), so the
    # mean over them is exact. That they turn up as often as they should: p > 1e-5, where drawing
    # uniformly, by the root of q, or without replacement is missed with probability below 1e-20.
    case, q = CASES[name], Importance(1).distribution(CASES[name].P).probability
    torch.testing.assert_close(q, case.matrix.square().sum(0) / case.matrix.square().sum())
    draws = importance_draws(case, size, count=3000, seed=5)
    share = (draws.sum(1) / case.matrix.sum(0)).nan_to_num(0)  # of a column: count / (size q)
    torch.testing.assert_close(draws, case.matrix * share[:, None])

    drawn = Counter[tuple[int, ...]]()
    seen = dict[tuple[int, ...], Tensor]()
    for counts, matrix in zip((share * size * q).round().long().tolist(), draws, strict=True):
        outcome = tuple(v for v in case.nodes for _ in range(counts[v]))
        drawn[outcome] += 1
        seen[outcome] = matrix
    outcomes = list(combinations_with_replacement(q.nonzero()[:, 0].tolist(), size))
    assert set(seen) == set(outcomes)
    orders = torch.tensor([len(set(permutations(outcome))) for outcome in outcomes])
    chance = orders * q[torch.tensor(outcomes)].prod(1)
    mean = (chance[:, None, None] * torch.stack([seen[outcome] for outcome in outcomes])).sum(0)
    torch.testing.assert_close(mean, case.matrix)
    assert chi_square_p(torch.tensor([drawn[outcome] for outcome in outcomes]), chance) > 1e-5


@pytest.mark.parametrize("name", ["directed-gcn", "directed-mean", "undirected-own matrix"])
def test_is_averages_to_p_by_monte_carlo(name: str) -> None:
    case = CASES[name]
    draws = importance_draws(case, size=5, count=1000, seed=6)
    assert standard_errors_off(draws, case.matrix) < STANDARD_ERRORS


def test_is_of_a_matrix_of_zeros_is_zero() -> None:
    zero = Propagation.from_matrix(torch.zeros(8, 8, dtype=torch.float64), dtype=torch.float64)
    case = Case(CASES["directed-gcn"].graph, zero.to_dense(), zero)
    assert not importance_draws(case, size=3, count=50, seed=0).any()


# Biased rules that the same checks must catch.


def test_the_appendix_rule_for_the_self_edge_is_biased() -> None:
    """It takes the self edge and D - 1 of the n neighbours, itself included, all scaled by n / D.

    Shares of P in the mean, for n = 6 and D = 2: 3.5 for the self edge, 0.5 for the others.
    """
    n, D = 6, 2
    P = gcn(Graph([[1, 2, 3, 4, 5], [0] * 5], normal(n, 1, seed=0)))
    row, eye = P.to_dense()[0], torch.eye(n, dtype=torch.float64)
    appendix = n / D * (eye[0] + eye) * row  # outcome i: the self edge, and i
    ratio = appendix.mean(0) / row
    torch.testing.assert_close(ratio, torch.tensor([3.5] + 5 * [0.5], dtype=torch.float64))
    ours = real_samples(P, 0, D - 1, 20_000, seed=7).ns(eye)
    drawn = torch.randint(n, (20_000,), generator=seeded(7))
    assert standard_errors_off(ours, row) < STANDARD_ERRORS
    assert standard_errors_off(appendix[drawn], row) > 10 * STANDARD_ERRORS


def test_is_without_replacement_weighted_as_with_replacement_is_biased() -> None:
    case = CASES["directed-gcn"]
    q, size, count = Importance(1).distribution(case.P).probability, 5, 2000
    drawn = torch.multinomial(q.expand(count, -1), size, generator=seeded(8))
    kept = torch.zeros(count, 8, dtype=torch.float64).scatter_(1, drawn, 1.0)
    biased = kept[:, None] * case.matrix / (size * q)
    assert standard_errors_off(biased, case.matrix) > 10 * STANDARD_ERRORS
