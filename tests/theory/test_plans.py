"""Proves that plans and minibatches keep the estimators' means, by Monte Carlo.

Seeds are fixed; `graphs.standard_errors_off` states the tolerance and the power.
"""

from __future__ import annotations

import pytest
import torch
from graphs import (
    CASES,
    GRAPHS,
    STANDARD_ERRORS,
    WIDTH,
    Case,
    Linear,
    TwoLinear,
    normal,
    outputs,
    seeded,
    side_by_side,
    standard_errors_off,
)
from torch import Tensor

from vrgcn.minibatches import MiniBatches
from vrgcn.plan import Planner
from vrgcn.propagation import gcn

SINGLE = 1e-6  # what is left by sums of histories, which are in single precision
every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())


def test_a_plan_gives_each_call_its_own_fanout() -> None:
    case, fanouts = CASES["directed-gcn"], [1, 0, 3]
    degrees, rest = torch.tensor(case.degrees), case.others
    planner = Planner(case.P, 3, "uniform", fanout=fanouts)
    for seed in range(20):
        plan = planner.plan(torch.tensor([2, 7, 0]), seeded(seed))
        for sources, targets, hop, fanout in zip(
            plan.levels, plan.levels[1:], plan.hops, fanouts, strict=False
        ):
            assert torch.equal(sources[: len(targets)], targets)
            assert len(sources.unique()) == len(sources)
            assert hop is not None
            assert torch.equal(hop.edges.counts, degrees[targets].clamp(max=fanout))
            entries = rest[targets[hop.edges.row_of_entry], sources[hop.edges.indices]]
            torch.testing.assert_close(hop.edges.values, entries)
            torch.testing.assert_close(hop.own, case.matrix.diag()[targets])


@pytest.mark.parametrize("sampler", ["uniform", "importance"])
def test_the_same_seed_gives_the_same_plan_with_one_thread_and_with_two(sampler: str) -> None:
    graph = side_by_side(GRAPHS["directed"](), 5000)
    planner = Planner(
        gcn(graph), 2, sampler, fanout=2, sample_size=3000, history=True, history_cap=2
    )
    plans = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        plan = planner.plan(torch.arange(0, 40_000, 3), seeded(9))
        plans.append([*plan.levels])
        for hop in plan.hops:
            for rows in (hop.edges, hop.history):
                plans[-1] += [hop.own, hop.scale, rows.indptr, rows.indices, rows.values]
    assert all(torch.equal(one, two) for one, two in zip(*plans, strict=True))


@pytest.mark.parametrize("graph_name", GRAPHS)
@pytest.mark.parametrize("cap", [1, 2, 4, 9])
def test_a_capped_history_averages_to_the_whole(graph_name: str, cap: int) -> None:
    copies, case = 5000, CASES[f"{graph_name}-gcn"]
    planner = Planner(
        gcn(side_by_side(case.graph, copies)), 1, "none", history=True, history_cap=cap
    )
    rows = planner.plan(torch.arange(8 * copies), seeded(10)).hops[0].history
    assert torch.equal(rows.counts.view(copies, 8)[0], torch.tensor(case.degrees).clamp(max=cap))
    past = normal(8, WIDTH, seed=11)
    draws = (rows @ past.repeat(copies, 1)).view(copies, 8, WIDTH)
    assert standard_errors_off(draws, case.others @ past) < STANDARD_ERRORS


pipeline_cases = pytest.mark.parametrize(
    "name", ["directed-gcn", "directed-mean", "undirected-gcn", "undirected-mean"]
)


def mean_of(model: Linear, case: Case) -> Tensor:
    """(nodes, width): P X W, or P P X W."""
    x = case.matrix @ case.graph.features @ model.weight.detach()
    return case.matrix @ x if isinstance(model, TwoLinear) else x


@pipeline_cases
def test_one_linear_layer_averages_to_p_x_w(name: str) -> None:
    case, model, copies = CASES[name], Linear(), 4000
    for fanout in (1, 2, 3):
        settings = {"propagation": name.split("-")[1], "fanout": fanout}
        for sampling in ({"estimator": "ns"}, {"estimator": "cv", "history_cap": fanout}):
            draws = outputs(model, case.graph, copies, preprocess=False, **sampling, **settings)
            assert draws.std(0).max() > 0.1  # it does sample
            assert standard_errors_off(draws, mean_of(model, case)) < STANDARD_ERRORS
        for estimator in ("exact", "ns", "is", "cv", "cvd", "history"):
            (exact,) = outputs(
                model, case.graph, 1, estimator=estimator, preprocess=True, **settings
            )
            torch.testing.assert_close(exact, mean_of(model, case))


@pipeline_cases
@pytest.mark.parametrize("estimator", ["exact", "ns", "cv", "cvd"])
def test_dropout_before_the_first_propagation_averages_to_p_x_w(name: str, estimator: str) -> None:
    case, model = CASES[name], Linear(dropout=0.5)
    draws = outputs(model, case.graph, 4000, estimator=estimator, propagation=name.split("-")[1])
    assert standard_errors_off(draws, mean_of(model, case), rounding=SINGLE) < STANDARD_ERRORS


@pipeline_cases
@pytest.mark.parametrize("preprocess", [False, True])
@pytest.mark.parametrize(
    ("estimator", "dropout"), [("ns", 0.0), ("ns", 0.5), ("cv", 0.0), ("cv", 0.5), ("cvd", 0.5)]
)
def test_two_linear_layers_average_to_p_p_x_w(
    name: str, preprocess: bool, estimator: str, dropout: float
) -> None:
    case, model = CASES[name], TwoLinear(dropout)
    draws = outputs(
        model, case.graph, 6000, normal(8, WIDTH, seed=22), estimator=estimator,
        propagation=name.split("-")[1], fanout=[1, 2], preprocess=preprocess,
    )  # fmt: skip
    assert standard_errors_off(draws, mean_of(model, case), rounding=SINGLE) < STANDARD_ERRORS


@pipeline_cases
def test_the_history_estimator_is_own_h_and_p_history_of_the_others(name: str) -> None:
    case, model, past = CASES[name], TwoLinear(), normal(8, WIDTH, seed=22)
    own = case.matrix.diag()[:, None] * (case.matrix @ case.graph.features)
    expected = (own + case.others @ past) @ model.weight.detach()
    for settings in ({"estimator": "history"}, {"estimator": "cv", "fanout": 0}):
        (result,) = outputs(model, case.graph, 1, past, propagation=name.split("-")[1], **settings)
        torch.testing.assert_close(result, expected, rtol=SINGLE, atol=SINGLE)


@pytest.mark.parametrize("name", ["directed-gcn", "directed-mean"])
def test_is_averages_to_p_x_w_through_minibatches(name: str) -> None:
    case, model, nodes = CASES[name], Linear(), torch.tensor([4, 0, 7, 2])
    batches = MiniBatches(
        model, case.graph, estimator="is", sample_size=4, nodes="all", preprocess=False,
        propagation=name.split("-")[1],
    )  # fmt: skip
    with torch.no_grad():
        draws = torch.stack([batches.batch(nodes).run(model) for _ in range(2000)])
    assert standard_errors_off(draws, mean_of(model, case)[nodes]) < STANDARD_ERRORS
