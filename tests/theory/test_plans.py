"""Proves that plans and minibatches keep the estimators' means, by Monte Carlo.

Seeds are fixed; `graphs.standard_errors_off` states the tolerance and the power.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tests.theory.graphs import (
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
from vrgcn.engine.minibatches import MiniBatches
from vrgcn.engine.plan import Hop, Plan
from vrgcn.engine.planner import Planner
from vrgcn.engine.relabel import Relabel
from vrgcn.engine.samplers.uniform import uniform
from vrgcn.graph.propagation import build_propagation, gcn

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


def contents(plan: Plan) -> list[Tensor]:
    """Everything that a plan holds."""
    found = [*plan.levels]
    for hop in plan.hops:
        for rows in (hop.edges, hop.history):
            found += [hop.own, hop.scale, rows.indptr, rows.indices, rows.values]
    return found


@pytest.mark.parametrize("at_once", [1, 60, 10_000])
@pytest.mark.parametrize("sampler", ["uniform", "none"])
def test_minibatches_drawn_together_are_those_drawn_alone(
    sampler: str, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vrgcn.engine.planner.ENTRIES_AT_ONCE", at_once)
    graph = side_by_side(GRAPHS["directed"](), 20)
    # With a fan-out beyond every degree there is nothing to choose.
    planner = Planner(gcn(graph), 2, sampler, fanout=100, history=True)
    nodes = torch.randperm(150)
    together = list(planner.plans(nodes, 16, seeded(0)))
    alone = [planner.plan(batch, seeded(0)) for batch in nodes.split(16)]
    for one, other in zip(together, alone, strict=True):
        assert all(torch.equal(*both) for both in zip(contents(one), contents(other), strict=True))


def test_how_many_minibatches_are_drawn_together(monkeypatch: pytest.MonkeyPatch) -> None:
    # Entries in a minibatch of 8 nodes, one copy of the graph: those of P, or two of each node.
    graph = side_by_side(GRAPHS["directed"](), 20)
    P, nodes = gcn(graph), torch.arange(160)
    whole = P.neighbours.num_entries // 20
    capped = int(P.neighbours.counts[:8].clamp(max=2).sum())
    monkeypatch.setattr("vrgcn.engine.planner.ENTRIES_AT_ONCE", 3 * whole)
    for settings, entries in (
        ({"sampler": "uniform", "fanout": 2, "history": True}, whole),
        ({"sampler": "uniform", "fanout": 2}, capped),
        ({"sampler": "none", "history": True, "history_cap": 2}, capped),
    ):
        planner = Planner(P, 2, **settings)
        assert planner._batches_at_once(nodes, 8) == 3 * whole // entries
    assert Planner(P, 2, "importance")._batches_at_once(nodes, 8) == 1
    assert Planner(P, 2, "full")._batches_at_once(nodes, 8) == 1
    assert Planner(P, 1, "none", preprocess=True)._batches_at_once(nodes, 8) == 1
    assert Planner(P, 2, "uniform")._batches_at_once(nodes[:8], 8) == 1
    monkeypatch.setattr("vrgcn.engine.planner.ENTRIES_AT_ONCE", 1)
    assert Planner(P, 2, "uniform")._batches_at_once(nodes, 8) == 1


@pytest.mark.parametrize("fanout", [0, 1, 3])
@pytest.mark.parametrize("size", [1, 7, 16, 70, 200])
def test_several_relabelled_together_are_those_relabelled_alone(fanout: int, size: int) -> None:
    P = gcn(side_by_side(GRAPHS["directed"](), 10))
    targets = torch.randperm(80, generator=seeded(1))[:70]
    edges = uniform(P, targets, fanout, seeded(2)).edges
    relabel = Relabel(80)
    alone = [
        relabel.one(*both) for both in zip(targets.split(size), edges.split(size), strict=True)
    ]
    together = list(relabel.several(targets, size, edges))
    for (one, rows), (other, others, _, _) in zip(alone, together, strict=True):
        assert torch.equal(one, other)
        assert rows.columns == others.columns == len(one)
        for part in ("indptr", "indices", "values"):
            assert torch.equal(getattr(rows, part), getattr(others, part))


def test_what_a_planner_knows_of_its_hops_is_so() -> None:
    graph = side_by_side(GRAPHS["directed"](), 20)
    for rule in ("gcn", "mean", "identity"):
        planner = Planner(build_propagation(rule, graph), 1, "uniform", fanout=1, history=True)
        plans = [
            *planner.plans(torch.arange(150), 16, seeded(3)),
            planner.plan(torch.arange(9), seeded(3)),
        ]
        for plan in plans:
            (hop,) = plan.hops
            told = dict(vars(hop))
            fresh = Hop(hop.own, hop.edges, hop.scale, hop.history)
            for name in told.keys() - vars(fresh).keys():
                assert torch.equal(
                    torch.as_tensor(getattr(fresh, name)), torch.as_tensor(told[name])
                )


@pytest.mark.parametrize("cap", [None, 2])
def test_neighbours_drawn_together_keep_the_mean(cap: int | None) -> None:
    copies, case = 6000, CASES["directed-gcn"]
    planner = Planner(
        gcn(side_by_side(case.graph, copies)), 1, "uniform", fanout=1, history=True, history_cap=cap
    )
    plans = list(planner.plans(torch.arange(8 * copies), 80, seeded(12)))
    assert planner._batches_at_once(torch.arange(8 * copies), 80) > 1
    h, past = normal(8, WIDTH, seed=11), normal(8, WIDTH, seed=13)
    draws = []
    for plan in plans:
        (hop,), sources = plan.hops, plan.levels[0] % 8
        picked = hop.pick(h[sources]) - hop.pick(past[sources])
        average = hop.history @ past.repeat(copies, 1)
        draws.append(hop.own[:, None] * h[plan.nodes % 8] + hop.combine(picked) + average)
    found = torch.cat(draws).view(copies, 8, WIDTH)
    assert standard_errors_off(found, case.matrix @ h) < STANDARD_ERRORS


@pytest.mark.parametrize("fanout", [0, 1, 2, 5])
def test_what_a_hop_picks_it_combines_to_the_sampled_product(fanout: int) -> None:
    ways = set()
    for nodes in (torch.tensor([2, 7, 0]), torch.arange(8), torch.tensor([4])):
        for name, case in CASES.items():
            if name.endswith("identity"):
                continue
            plan = Planner(case.P, 1, "uniform", fanout=fanout).plan(nodes, seeded(fanout))
            (hop,) = plan.hops
            h = normal(len(plan.levels[0]), WIDTH, seed=3).requires_grad_()
            sampled = hop.edges.to_torch().to_dense()
            for root, scale in ((False, hop.scale), (True, hop.scale.sqrt())):
                result = hop.combine(hop.pick(h), root=root)
                torch.testing.assert_close(result, scale[:, None] * (sampled @ h))
                (gradient,) = torch.autograd.grad(result.sum(), h)
                wanted = (scale[:, None] * sampled).sum(0)[:, None].expand_as(h)
                torch.testing.assert_close(gradient, wanted)
            ways.add(hop.by_entry)
    assert ways == ({True} if fanout < 2 else {True, False})


@pytest.mark.parametrize("sampler", ["uniform", "importance"])
def test_the_same_seed_gives_the_same_plan_with_one_thread_and_with_two(sampler: str) -> None:
    graph = side_by_side(GRAPHS["directed"](), 5000)
    planner = Planner(
        gcn(graph), 2, sampler, fanout=2, sample_size=3000, history=True, history_cap=2
    )
    plans = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        nodes = torch.arange(0, 40_000, 3)
        plans.append(contents(planner.plan(nodes, seeded(9))))
        for plan in planner.plans(nodes, 1000, seeded(9)):
            plans[-1] += contents(plan)
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
