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
    per_target,
    seeded,
    side_by_side,
    standard_errors_off,
)
from vrgcn.engine.minibatches import MiniBatches
from vrgcn.engine.plan import Plan
from vrgcn.engine.planner import Generators, Planner
from vrgcn.engine.relabel import Relabel
from vrgcn.engine.samplers import build_sampler, fanout_per_level
from vrgcn.engine.samplers.uniform import uniform
from vrgcn.graph.propagation import Propagation, gcn

SINGLE = 1e-6  # rounding of sums of histories in single precision
every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())


def planner_of(
    P: Propagation,
    levels: int,
    sampler: str,
    *,
    fanout: int | list[int] = 1,
    sample_size: int = 512,
    preprocess: bool = False,
    **settings: object,
) -> Planner:
    matrices = [{} if preprocess and level == 0 else {None: P} for level in range(levels)]
    built = build_sampler(sampler, fanout_per_level(fanout, levels), {"sample_size": sample_size})
    return Planner(matrices, built, **settings)


def by_place(seed: int) -> Generators:
    """A generator of its own for each place and purpose."""
    return lambda place, together: seeded(1_000_003 * seed + 2 * place + together)


def test_a_plan_gives_each_call_its_own_fanout() -> None:
    case, fanouts = CASES["directed-gcn"], [1, 0, 3]
    degrees, rest = torch.tensor(case.degrees), case.others
    planner = planner_of(case.P, 3, "uniform", fanout=fanouts)
    for seed in range(20):
        plan = planner.plan(torch.tensor([2, 7, 0]), seeded(seed))
        levels = [level.nodes for level in plan.levels]
        for sources, targets, hop, fanout in zip(
            levels, levels[1:], plan.hops, fanouts, strict=False
        ):
            assert torch.equal(sources[: len(targets)], targets)
            assert len(sources.unique()) == len(sources)
            assert torch.equal(hop.edges.counts, degrees[targets].clamp(max=fanout))
            entries = rest[targets[hop.edges.row_of_entry], sources[hop.edges.indices]]
            torch.testing.assert_close(hop.edges.weights(), entries)
            torch.testing.assert_close(hop.own, case.matrix.diag()[targets])


def contents(plan: Plan) -> list[Tensor]:
    """Everything that a plan holds."""
    found = [level.nodes for level in plan.levels]
    for hop in plan.hops:
        found += [hop.own, hop.scale]
        for rows in (hop.edges, hop.history):
            found += [rows.indptr, rows.indices, rows.values, rows.scale]
    return found


def same(one: Tensor | float | None, other: Tensor | float | None) -> bool:
    return torch.equal(one, other) if isinstance(one, Tensor) else one == other


@pytest.mark.parametrize("at_once", [1, 60, 10_000])
@pytest.mark.parametrize("sampler", ["uniform", "few", "none"])
def test_minibatches_drawn_together_are_those_drawn_alone(
    sampler: str, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vrgcn.engine.planner.ENTRIES_AT_ONCE", at_once)
    graph = side_by_side(GRAPHS["directed"](), 20)
    # With a fan-out beyond every degree there is nothing to choose.
    planner = planner_of(gcn(graph), 2, sampler, fanout=100, history=True)
    nodes = torch.randperm(150)
    together = list(planner.plans(nodes.split(16), by_place(0)))
    alone = [planner.plan(batch, seeded(0)) for batch in nodes.split(16)]
    for one, other in zip(together, alone, strict=True):
        assert all(same(*both) for both in zip(contents(one), contents(other), strict=True))


def test_how_many_minibatches_are_drawn_together(monkeypatch: pytest.MonkeyPatch) -> None:
    # Entries in a minibatch of 8 nodes, one copy of the graph: those of P, or two of each node.
    graph = side_by_side(GRAPHS["directed"](), 20)
    P, nodes = gcn(graph), torch.arange(160)
    whole = P.adjacency.num_entries // 20
    capped = int(P.degrees(nodes[:8]).clamp(max=2).sum())
    monkeypatch.setattr("vrgcn.engine.planner.ENTRIES_AT_ONCE", 3 * whole)
    for settings, entries in (
        ({"sampler": "uniform", "fanout": 2, "history": True}, whole),
        ({"sampler": "uniform", "fanout": 2}, whole),
        ({"sampler": "full"}, whole),
        ({"sampler": "none", "history": True, "history_cap": 2}, capped),
    ):
        planner = planner_of(P, 2, **settings)
        assert planner._groups(nodes.split(8))[1] == 3 * whole // entries
    assert planner_of(P, 2, "importance")._groups(nodes.split(8))[1] == 1
    assert planner_of(P, 1, "none", preprocess=True)._groups(nodes.split(8))[1] == 1
    assert planner_of(P, 2, "uniform")._groups(nodes[:8].split(8))[1] == 1
    monkeypatch.setattr("vrgcn.engine.planner.ENTRIES_AT_ONCE", 1)
    assert planner_of(P, 2, "uniform")._groups(nodes.split(8))[1] == 1


@pytest.mark.parametrize("at_once", [1, 100, 10_000])
@pytest.mark.parametrize("sampler", ["uniform", "few", "importance", "full", "none"])
def test_an_epoch_taken_up_anywhere_has_the_same_plans(
    sampler: str, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vrgcn.engine.planner.ENTRIES_AT_ONCE", at_once)
    P = gcn(side_by_side(GRAPHS["directed"](), 20))
    planner = planner_of(P, 2, sampler, history=True, history_cap=2)
    nodes = torch.randperm(150, generator=seeded(1))
    whole = [contents(plan) for plan in planner.plans(nodes.split(16), by_place(3))]
    for start in range(len(whole) + 1):
        rest = [contents(plan) for plan in planner.plans(nodes.split(16), by_place(3), start)]
        assert len(rest) == len(whole) - start
        for one, other in zip(rest, whole[start:], strict=True):
            assert all(same(*both) for both in zip(one, other, strict=True))


@pytest.mark.parametrize("fanout", [0, 1, 3])
@pytest.mark.parametrize("size", [1, 7, 16, 70, 200])
def test_several_relabelled_together_are_those_relabelled_alone(fanout: int, size: int) -> None:
    P = gcn(side_by_side(GRAPHS["directed"](), 10))
    targets = torch.randperm(80, generator=seeded(1))[:70]
    edges = uniform(P, targets, fanout, seeded(2)).edges
    relabel = Relabel(80)
    alone = [
        relabel.one(part, [mine])
        for part, mine in zip(targets.split(size), edges.split(size), strict=True)
    ]
    together = relabel.several(targets, size, [edges])
    for (one, (rows,)), (other, (others,)) in zip(alone, together, strict=True):
        assert torch.equal(one, other)
        assert rows.columns == others.columns == len(one)
        for part in ("indptr", "indices", "values"):
            assert torch.equal(getattr(rows, part), getattr(others, part))


@pytest.mark.parametrize("cap", [None, 2])
def test_neighbours_drawn_together_keep_the_mean(cap: int | None) -> None:
    copies, case = 6000, CASES["directed-gcn"]
    planner = planner_of(
        gcn(side_by_side(case.graph, copies)), 1, "uniform", fanout=1, history=True, history_cap=cap
    )
    plans = list(planner.plans(torch.arange(8 * copies).split(80), by_place(12)))
    assert planner._groups(torch.arange(8 * copies).split(80))[1] > 1
    h, past = normal(8, WIDTH, seed=11), normal(8, WIDTH, seed=13)
    draws = []
    for plan in plans:
        (hop,), sources = plan.hops, plan.levels[0].nodes % 8
        picked = hop.pick(h[sources]) - hop.pick(past[sources])
        average = hop.history @ past.repeat(copies, 1)
        draws.append(
            per_target(hop.own, hop.targets)[:, None] * h[plan.nodes % 8]
            + hop.combine(picked)
            + average
        )
    found = torch.cat(draws).view(copies, 8, WIDTH)
    assert standard_errors_off(found, case.matrix @ h) < STANDARD_ERRORS


@pytest.mark.parametrize("fanout", [0, 1, 2, 5])
def test_what_a_hop_picks_it_combines_to_the_sampled_product(fanout: int) -> None:
    ways = set()
    for nodes in (torch.tensor([2, 7, 0]), torch.arange(8), torch.tensor([4])):
        for name, case in CASES.items():
            if name.endswith("identity"):
                continue
            plan = planner_of(case.P, 1, "uniform", fanout=fanout).plan(nodes, seeded(fanout))
            (hop,) = plan.hops
            h = normal(plan.sizes[0], WIDTH, seed=3).requires_grad_()
            sampled = hop.edges.to_torch(torch.float64).to_dense()
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
    planner = planner_of(
        gcn(graph), 2, sampler, fanout=2, sample_size=3000, history=True, history_cap=2
    )
    plans = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        nodes = torch.arange(0, 40_000, 3)
        plans.append(contents(planner.plan(nodes, seeded(9))))
        for plan in planner.plans(nodes.split(1000), by_place(9)):
            plans[-1] += contents(plan)
    assert all(same(one, two) for one, two in zip(*plans, strict=True))


@pytest.mark.parametrize("graph_name", GRAPHS)
@pytest.mark.parametrize("cap", [1, 2, 4, 9])
def test_a_capped_history_averages_to_the_whole(graph_name: str, cap: int) -> None:
    copies, case = 5000, CASES[f"{graph_name}-gcn"]
    planner = planner_of(
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
