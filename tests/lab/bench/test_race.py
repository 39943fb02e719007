"""A race to validation scores."""

from __future__ import annotations

import pytest
import torch

from lab.bench.algorithms import ALGORITHMS, Algorithm, Recipe
from lab.bench.race import Outcome, Runner, Validation, chosen, race, summary
from vrgcn.graph.graph import Graph
from vrgcn.runs.fit import fit
from vrgcn.training.config import TrainConfig


def test_parts_of_an_epoch_are_all_its_steps(bench):
    runner = Runner(Algorithm(bench.graph, ALGORITHMS["CVD+PP"], bench.architecture), 1, 3, 0)
    while runner.running:
        runner.part()
    assert runner.algorithm.batches.step == runner.algorithm.steps_per_epoch == 10
    assert runner.outcome(0.5).epochs == 1
    assert runner.seconds > 0


def test_a_runner_does_not_depend_on_who_else_runs(bench):
    def score(others: int) -> float:
        torch.manual_seed(others)
        runners = [
            Runner(Algorithm(bench.graph, ALGORITHMS["CVD+PP"], bench.architecture), 1, 2, 0)
            for _ in range(1 + others)
        ]
        for _ in range(2):
            for runner in runners:
                runner.part()
        return Validation(bench.graph)(runners[0].algorithm.model, "mean")

    assert score(0) == score(1)


def test_a_sibling_is_one_made_anew_and_shares_what_is_large(bench):
    recipe, rates = ALGORITHMS["two-way"], (0.003, 0.01)
    first = Algorithm(bench.graph, recipe, bench.architecture, learning_rate=rates[0])
    sibling = first.sibling(rates[1])
    anew = Algorithm(bench.graph, recipe, bench.architecture, learning_rate=rates[1])
    assert sibling.batches.setup is first.batches.setup
    runners = [Runner(each, 1, 1, 0) for each in (first, sibling, anew)]
    for runner in runners:
        runner.part()
    weights = [runner.algorithm.model.state_dict() for runner in runners]
    assert all(torch.equal(weights[1][name], weights[2][name]) for name in weights[1])
    assert any(not torch.equal(weights[0][name], weights[2][name]) for name in weights[0])


def test_validation_is_that_of_fit(bench):
    algorithm = Algorithm(bench.graph, ALGORITHMS["exact+PP"], bench.architecture)
    result = fit(algorithm.model, bench.graph, TrainConfig(epochs=1, inductive=True))
    assert Validation(bench.graph)(algorithm.model, "mean") == result.val


def test_a_race_counts_as_won_when_every_run_was():
    runs = [Outcome(True, 1.0, 0.5, 0.97), Outcome(False, 9.0, 4.0, 0.9)]
    assert not summary(runs)["reached"]
    assert summary(runs)["seconds"] == 5.0


def test_a_graph_without_validation_nodes_is_refused(graph):
    bare = Graph(graph.edge_index(), graph.features, graph.labels, train=graph.train)
    with pytest.raises(ValueError, match="needs validation nodes"):
        Validation(bare)


def test_the_rate_that_gets_there_soonest_is_chosen(bench):
    recipes = {"two-way": Recipe("two-way", rates=(1e-9, 0.01))}
    targets = (0.5, 0.6)
    runners = race(
        bench.graph, recipes, bench.architecture, Validation(bench.graph),
        targets=targets, limit=lambda _: 3, parts=2, seed=0, rounds=range(6),
    )  # fmt: skip
    found = chosen("two-way", [runners], targets)
    assert found["rate"] == 0.01
    assert found["reached"]
    assert not runners["two-way", 1e-9].arrivals
    assert runners["two-way", 1e-9].done == 6
    assert found["later"]["0.6"]["seconds"] >= found["seconds"] > 0
