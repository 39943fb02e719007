"""Stages of a step, measured from outside, and what a step computes and moves."""

from __future__ import annotations

import time

import pytest
import torch

from lab.bench import step
from lab.bench.algorithms import ALGORITHMS, Algorithm
from lab.bench.stages import STAGES, StagedAlgorithm
from vrgcn.engine.history import History


def _algorithm(bench, name):
    torch.manual_seed(0)
    return Algorithm(bench.graph, ALGORITHMS[name], bench.architecture)


@pytest.mark.parametrize("name", step.NAMES)
def test_the_stages_make_up_the_whole_step(bench, name):
    staged = StagedAlgorithm(_algorithm(bench, name))
    start = time.perf_counter()
    taken = [staged.step() for _ in range(5)]
    total = time.perf_counter() - start
    assert all(set(stages) == set(STAGES) for stages in taken)
    assert all(value > 0 for stages in taken for value in stages.values())
    stages = sum(sum(stages.values()) for stages in taken)
    assert 0.5 * total < stages <= total


def test_a_slow_average_is_found_where_it_is(bench, monkeypatch):
    staged = StagedAlgorithm(_algorithm(bench, "CV+PP"))
    average = History.average

    def slow(self, rows, dtype):
        time.sleep(0.5)
        return average(self, rows, dtype)

    monkeypatch.setattr(History, "average", slow)
    taken = staged.step()
    assert taken.pop("average") >= 0.5
    assert sum(taken.values()) < 0.4


@pytest.mark.parametrize("name", step.NAMES)
def test_looking_at_the_clock_changes_nothing(bench, name):
    plain = _algorithm(bench, name)
    plain.run(2)

    timed = _algorithm(bench, name)
    StagedAlgorithm(timed).step()
    for a, b in zip(plain.model.parameters(), timed.model.parameters(), strict=True):
        assert torch.equal(a, b)
    tables, others = plain.batches.histories.tables, timed.batches.histories.tables
    assert torch.equal(tables[1, "h"].values, others[1, "h"].values)
    assert torch.equal(tables[1, "h"].written, others[1, "h"].written)


def test_the_work_of_a_step_is_counted(bench):
    staged = StagedAlgorithm(_algorithm(bench, "CV+PP"))
    plan = step._plan(staged)
    work = step._work(staged, plan)
    _, level1, batch = plan.sizes
    K, h, classes = bench.graph.num_features, bench.scale.hidden, bench.graph.num_classes
    first = 2 * level1 * 2 * K * h
    forward = first + 2 * level1 * h * h + 2 * batch * (2 * h * h + h * classes)
    # Backward: a product for each weight and each input, but none for the features.
    assert work["flops"] == pytest.approx(3 * forward - first, rel=0.1)
    assert work["gathered"] == 2 * (2 * level1) * K * 4
    entries = plan.history_reads
    assert work["averaged"] == entries * (h * 2 + 8) + batch * h * 2


def test_the_section_reports_every_stage_and_shares_of_the_machine(bench):
    section = step.run(bench)
    assert [row[0] for row in section.tables[0].rows] == [*STAGES, "step"]
    for name in step.NAMES:
        result = section.results["steps"][name]
        rate, best = result["gflops"]["median"], section.results["machine"][step.SQUARE]["median"]
        assert result["share_of_square_product"] == pytest.approx(rate / best)
        assert 0 < result["share_of_square_product"] < 1
