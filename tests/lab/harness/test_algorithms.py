"""The table of algorithms, and one of them in training."""

from __future__ import annotations

import pytest
import torch

from lab.bench.bench import COMPARED
from lab.harness.algorithms import ALGORITHMS, Algorithm, Architecture
from lab.harness.race import Runner
from lab.harness.trainers import EndlessTrainer
from lab.paper.settings import setting


def test_a_sibling_is_one_made_anew_and_shares_what_is_large(bench):
    recipe, rates = ALGORITHMS["two-way"], (0.003, 0.01)
    first = Algorithm(bench.graph, recipe, bench.architecture, learning_rate=rates[0])
    sibling = first.sibling(rates[1])
    anew = Algorithm(bench.graph, recipe, bench.architecture, learning_rate=rates[1])
    assert sibling.batches.setup is first.batches.setup
    for each in (first, sibling, anew):
        Runner(each, 1, 1, 0).turn()
    weights = [each.model.state_dict() for each in (first, sibling, anew)]
    assert all(torch.equal(weights[1][name], weights[2][name]) for name in weights[1])
    assert any(not torch.equal(weights[0][name], weights[2][name]) for name in weights[0])


def test_the_mlp_is_the_same_model_without_neighbours(graph):
    algorithm = Algorithm(graph, ALGORITHMS["MLP"], Architecture(hidden=8, batch=64))
    assert algorithm.batches.setup.P[None].adjacency.num_entries == 0
    assert type(algorithm.model).__name__ == "GraphSAGE"


def test_dropout_is_where_the_recipe_says(graph):
    for name, order in (("M0", "before"), ("M1", "after")):
        algorithm = Algorithm(graph, ALGORITHMS[name], Architecture(hidden=8, batch=64))
        assert algorithm.model.order == order


@pytest.mark.parametrize("name", COMPARED)
def test_bench_and_paper_mean_the_same_by_a_name(graph, name):
    theirs, config = setting("reddit"), setting("reddit").config(name, seed=0, threads=1)
    paper = EndlessTrainer(theirs.build(name, graph, 0), graph, config).trainer.minibatches
    bench = Algorithm(graph, ALGORITHMS[name], Architecture(batch=config.batch_size)).batches
    assert bench.estimator == paper.estimator
    assert bench.setup.P[None].to_dense().equal(paper.setup.P[None].to_dense())
    assert bench.setup.averages.keys() == paper.setup.averages.keys()
    sizes = [next(iter(batches)).plan.sizes for batches in (bench, paper)]
    assert sizes[0] == sizes[1]
