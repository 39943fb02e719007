"""Stages of a step, measured from outside, and what a step computes and moves."""

from __future__ import annotations

import time

import pytest
import torch

from lab.bench import stages, step
from lab.bench.stages import STAGES, StagedAlgorithm
from lab.harness.algorithms import ALGORITHMS, Algorithm
from lab.harness.timing import Spread
from vrgcn.engine.batch import Batch
from vrgcn.engine.history import History
from vrgcn.engine.propagate import Propagate
from vrgcn.engine.setup import Setup


def _algorithm(bench, name):
    torch.manual_seed(0)
    return Algorithm(bench.graph, ALGORITHMS[name], bench.architecture)


class Hands:
    """A clock that moves where a test wants time to pass."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds

    def pass_in(self, monkeypatch, owner, name, seconds: float) -> None:
        """Let each call of a method take so many seconds."""
        method = getattr(owner, name)

        def slow(*arguments, **named):
            self.seconds += seconds
            return method(*arguments, **named)

        monkeypatch.setattr(owner, name, slow)


@pytest.mark.parametrize("name", step.NAMES)
def test_the_stages_make_up_the_whole_step(bench, name, monkeypatch):
    hands, algorithm = Hands(), _algorithm(bench, name)
    staged = StagedAlgorithm(algorithm, hands)
    passes = 2 if name == "CVD+PP" else 1  # without dropout, and then with it
    hands.pass_in(monkeypatch, algorithm, "batch", 1)
    hands.pass_in(monkeypatch, Setup, "inputs", 2)
    hands.pass_in(monkeypatch, History, "average", 4)
    hands.pass_in(monkeypatch, Propagate, "beside", 8)  # once in each of two layers
    hands.pass_in(monkeypatch, algorithm.model.layers[0], "forward", 32)
    hands.pass_in(monkeypatch, stages, "loss_per_node", 64)
    hands.pass_in(monkeypatch, torch.Tensor, "backward", 128)
    hands.pass_in(monkeypatch, algorithm.optimizer, "zero_grad", 256)
    hands.pass_in(monkeypatch, algorithm.optimizer, "step", 512)
    hands.pass_in(monkeypatch, Batch, "commit", 1024)
    start = hands()
    taken = staged.step()
    assert taken == {
        "plan": 1,
        "gather": 2,
        "average": 4,
        "estimate": passes * 2 * 8,
        "dense": passes * 32 + 64,
        "backward": 128,
        "optimiser": 256 + 512,
        "commit": 1024,
    }
    assert list(taken) == list(STAGES)
    assert sum(taken.values()) == hands() - start


def test_the_stages_of_a_real_step_take_time_and_no_more_than_the_step(bench):
    staged = StagedAlgorithm(_algorithm(bench, "CVD+PP"))
    start = time.perf_counter()
    taken = staged.step()
    total = time.perf_counter() - start
    assert all(value > 0 for value in taken.values())
    assert sum(taken.values()) <= total


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
        assert result["share_of_square_product"] > 0


def test_shares_of_the_machine_are_rates_over_its_own():
    turn = dict.fromkeys(STAGES, 0.125) | {"gather": 0.5, "average": 0.5, "dense": 1.5}
    turn["backward"] = 0.5
    work = {"flops": 6 * 10**9, "gathered": 10**9, "averaged": 3 * 10**9}
    machine = {
        name: Spread(rate, rate, rate)
        for name, rate in ((step.SQUARE, 12.0), (step.LAYERS, 6.0), (step.COPY, 8.0))
    }
    result = step._result([turn], work, machine | {step.GATHER: Spread(5.0, 5.0, 5.0)})
    assert result["gflops"]["median"] == 3.0
    assert result["share_of_square_product"] == 0.25
    assert result["share_of_layer_products"] == 0.5
    assert result["gigabytes_per_second"]["median"] == 4.0
    assert result["share_of_copy"] == 0.5
    assert result["share_of_gather"] == 0.8
    assert result["step_ms"]["median"] == 3.5e3
