"""The race to a validation score."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from vrgcn.benchmarks import accuracy
from vrgcn.benchmarks.accuracy import PEER, SAME_FANOUTS, Outcome, Runner, Validation
from vrgcn.benchmarks.algorithms import ALGORITHMS, Algorithm, Architecture
from vrgcn.graph.graph import Graph
from vrgcn.training.config import TrainConfig
from vrgcn.training.fit import fit


class _Peer:
    steps_per_epoch = 7

    def milliseconds(self, steps):
        assert steps == 1
        return 20.0


@pytest.fixture
def no_memory(monkeypatch):
    monkeypatch.setattr(accuracy, "_memory", lambda bench: {})


def test_parts_of_an_epoch_are_all_its_steps(bench):
    runner = Runner(Algorithm(bench.graph, ALGORITHMS["CVD+PP"], bench.architecture), 1, 3, 0)
    while runner.running:
        runner.part()
    assert runner.algorithm.batches.step == runner.algorithm.steps_per_epoch == 10
    assert runner.outcome().epochs == 1
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


def test_validation_is_that_of_fit(bench):
    algorithm = Algorithm(bench.graph, ALGORITHMS["exact+PP"], bench.architecture)
    result = fit(algorithm.model, bench.graph, TrainConfig(epochs=1, inductive=True))
    assert Validation(bench.graph)(algorithm.model, "mean") == result.val


def test_who_reaches_the_target_stops_and_who_does_not_says_so(bench, monkeypatch, no_memory):
    monkeypatch.setattr(accuracy, "_peer", lambda bench: _Peer())
    bench.scale = replace(bench.scale, target=0.01)
    reached = accuracy.run(bench).results["algorithms"]
    for name in ALGORITHMS:
        assert reached[name]["reached"]
        assert reached[name]["epochs"] == 0.5

    bench.scale = replace(bench.scale, target=1.0, epochs=2, slow_epochs=1, runs=2)
    section = accuracy.run(bench)
    never = section.results["algorithms"]
    assert not never["MLP"]["reached"]
    assert never["MLP"]["epochs"] == 2
    assert never[SAME_FANOUTS]["epochs"] == 1
    assert len(never["MLP"]["runs"]) == 2
    row = next(row for row in section.tables[0].rows if row[0] == "MLP")
    assert row[1] == f"never in 2 (best {never['MLP']['best']:.3f})"
    assert row[2].startswith("> ")


def test_the_peers_time_is_a_sample_multiplied(bench, monkeypatch, no_memory):
    monkeypatch.setattr(accuracy, "_peer", lambda bench: _Peer())
    bench.scale = replace(bench.scale, target=0.01)
    section = accuracy.run(bench)
    peer = section.results["algorithms"][PEER]
    assert peer["epoch_seconds"] == pytest.approx(0.020 * 7)
    assert peer["seconds"] == pytest.approx(0.020 * 7 * 0.5)
    assert peer["batches_timed"] == 1
    assert any("multiplied by the 7 of an epoch" in note for note in section.notes)


def test_a_race_counts_as_won_when_every_run_was():
    runs = [Outcome(True, 1.0, 0.5, 0.97), Outcome(False, 9.0, 4.0, 0.9)]
    assert not accuracy._summary(runs)["reached"]
    assert accuracy._summary(runs)["seconds"] == 5.0


def test_a_graph_without_validation_nodes_is_refused(graph):
    bare = Graph(graph.edge_index(), graph.features, graph.labels, train=graph.train)
    with pytest.raises(ValueError, match="needs validation nodes"):
        Validation(bare)


def test_the_mlp_is_the_same_model_without_neighbours(graph):
    algorithm = Algorithm(graph, ALGORITHMS["MLP"], Architecture(hidden=8, batch=64))
    assert algorithm.batches.setup.P[None].adjacency.num_entries == 0
    assert type(algorithm.model).__name__ == "GraphSAGE"
