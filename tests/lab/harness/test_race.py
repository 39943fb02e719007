"""Algorithms in turns: the same curves as alone, equal shares of an epoch, and who leaves."""

from __future__ import annotations

import pytest
import torch

from lab.harness.algorithms import ALGORITHMS, Algorithm
from lab.harness.race import Entry, Runner, Validation, race, turns_to
from lab.harness.trainers import EndlessTrainer
from lab.paper.experiment import Choice
from lab.paper.runs import train_run
from lab.paper.settings import open_graph, setting
from tests.messages import refused
from vrgcn.graph.graph import Graph
from vrgcn.inference.predict import predict
from vrgcn.runs.fit import fit
from vrgcn.training.config import TrainConfig
from vrgcn.training.objective import score

PAPER = setting("communities")
NAMES = {"mlp": "MLP", "cvd": "CVD+PP", "ns": "NS", "two_way": "two-way"}


@pytest.fixture(scope="module")
def communities():
    return open_graph("communities", Choice(quick=True))


def parts_of(graph, algorithm: str, **changes):
    """Model, graph and settings of one of the paper's algorithms: 4 steps an epoch."""
    config = PAPER.config(algorithm, seed=0, batch_size=300, threads=1, **changes)
    return PAPER.build(algorithm, graph, 0), graph, config


def entries(graph, **epochs: int) -> dict[str, Entry]:
    return {
        NAMES[name]: Entry(EndlessTrainer(*parts_of(graph, NAMES[name])), count)
        for name, count in epochs.items()
    }


def run(graph, entries: dict[str, Entry], *, target: float = 2.0, parts: int = 1):
    return race(entries, Validation(graph), target=target, parts=parts, seed=0, pace="MLP")


def test_nobodys_scores_depend_on_who_else_is_in_the_race(communities):
    together = run(communities, entries(communities, mlp=2, cvd=2, ns=2, two_way=2), parts=2)
    for name in ("CVD+PP", "two-way"):
        curve = train_run(*parts_of(communities, name, epochs=2))["val"]
        assert together[name].val[1::2] == pytest.approx(curve, abs=1e-6)  # after whole epochs


def test_nor_do_those_of_an_algorithm_that_draws_from_the_default_generator(bench):
    def score(others: int) -> float:
        torch.manual_seed(others)
        runners = [
            Runner(Algorithm(bench.graph, ALGORITHMS["CVD+PP"], bench.architecture), 2, 2, 0)
            for _ in range(1 + others)
        ]
        for _ in range(2):
            for runner in runners:
                runner.turn()
        return Validation(bench.graph)(runners[0].training)

    assert score(0) == score(1)


@pytest.mark.parametrize("parts", [1, 3])
def test_parts_of_an_epoch_add_up_to_it(communities, bench, parts):
    found = run(communities, entries(communities, mlp=1, cvd=1), parts=parts)  # of 4 steps
    for runner in found.values():
        assert len(runner.val) == len(runner.seconds) == parts
        assert all(seconds > 0 for seconds in runner.seconds)
        assert runner.training.trainer.minibatches.step == runner.training.steps_per_epoch == 4
    algorithm = Algorithm(bench.graph, ALGORITHMS["CVD+PP"], bench.architecture)
    runner = Runner(algorithm, parts, parts, 0)
    while runner.running(2.0):
        runner.turn()
    assert algorithm.batches.step == algorithm.steps_per_epoch == 10
    assert sum(runner.seconds) > 0


def test_who_has_reached_the_target_leaves_and_the_pace_stays_to_the_end(communities):
    whole = run(communities, entries(communities, mlp=1, two_way=4))
    target = whole["two-way"].val[1]
    assert target > whole["two-way"].val[0]
    found = run(communities, entries(communities, mlp=1, two_way=4, ns=3), target=target)
    ours, ns, mlp = (found[name].val for name in ("two-way", "NS", "MLP"))
    assert ours == whole["two-way"].val[:2]
    assert max(ns) < target
    assert len(ns) == 3  # its own limit
    assert len(mlp) == 3  # its limit does not count


def test_a_race_has_no_more_rounds_than_it_is_given(bench):
    algorithm = Algorithm(bench.graph, ALGORITHMS["CVD+PP"], bench.architecture)
    drawn = iter(range(3))
    found = race(
        {"CVD+PP": Entry(algorithm, 5)}, Validation(bench.graph),
        target=2.0, parts=1, seed=0, rounds=drawn,
    )  # fmt: skip
    assert len(found["CVD+PP"].seconds) == 3
    rounds = iter(range(9))
    won = Algorithm(bench.graph, ALGORITHMS["CVD+PP"], bench.architecture)
    race({"CVD+PP": Entry(won, 5)}, Validation(bench.graph), target=0.01, parts=1, seed=0,
         rounds=rounds)  # fmt: skip
    assert next(rounds) == 1  # none is begun when all have arrived


def test_a_loss_that_becomes_infinite_ends_ones_race_and_is_told(communities):
    wild = EndlessTrainer(*parts_of(communities, "NS", learning_rate=1e30))
    found = run(communities, {**entries(communities, mlp=1, cvd=1), "NS": Entry(wild, 3)})
    assert "became" in found["NS"].training.diverged
    assert len(found["NS"].val) < 2
    assert len(found["NS"].seconds) == len(found["NS"].val) + 1  # and no turn more
    assert found["CVD+PP"].training.diverged is None


def test_validation_is_that_of_fit(bench):
    algorithm = Algorithm(bench.graph, ALGORITHMS["exact+PP"], bench.architecture)
    result = fit(algorithm.model, bench.graph, TrainConfig(epochs=1, inductive=True))
    assert Validation(bench.graph)(algorithm) == result.val


def test_a_graph_without_validation_nodes_is_refused(graph):
    bare = Graph(graph.edge_index(), graph.features, graph.labels, train=graph.train)
    with refused():
        Validation(bare)


def test_the_first_turn_that_reaches_the_target_counts():
    assert turns_to(0.9, [0.5, 0.9, 0.8, 0.95]) == 2
    assert turns_to(0.96, [0.5, 0.9]) is None


@pytest.mark.parametrize("average", [True, False])
def test_the_weights_that_training_would_keep_are_scored(bench, average):
    """Averaged ones by default; the steps go on with their own."""
    graph, recipe = bench.graph, ALGORITHMS["CVD+PP"]
    model = bench.architecture.model(graph)
    config = TrainConfig(estimator="cvd", inductive=True, average_weights=average, threads=1)
    for training in (
        Algorithm(graph, recipe, bench.architecture, average_weights=average),
        EndlessTrainer(model, graph, config),
    ):
        training.run(training.steps_per_epoch)
        last = [p.detach().clone() for p in training.model.parameters()]
        with training.evaluated():
            outputs = predict(training.model, graph, graph.val)
            same = all(map(torch.equal, last, training.model.parameters()))
        assert same is not average
        assert Validation(graph)(training) == score(outputs, graph.labels[graph.val])
        assert all(map(torch.equal, last, training.model.parameters()))
