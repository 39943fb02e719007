"""Training on minibatches of runs of nodes."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from tests.messages import refused
from vrgcn import Graph, GraphSAGE, MiniBatches, TrainConfig, fit
from vrgcn.targets.opening import find_target
from vrgcn.training.trainer import Trainer


def ring() -> Graph:
    nodes = 240
    places = torch.arange(nodes)
    labels = (places // 30) % 2
    x = torch.randn(nodes, 4, generator=torch.Generator().manual_seed(0)) + labels[:, None]
    edges = torch.stack([places, (places + 1) % nodes])
    return Graph(edges, x, labels, train=places[::2], val=places[1::4], undirected=True)


def model() -> GraphSAGE:
    torch.manual_seed(0)
    return GraphSAGE(4, 8, 2, layers=2, dropout=0.2)


CONFIG = TrainConfig(estimator="two-way", epochs=3, batch_size=48, batches="blocks", block=8)


def test_a_run_with_blocks_goes_on_to_the_bits_of_an_unbroken_one():
    whole = fit(model(), ring(), CONFIG)
    broken = Trainer(model(), ring(), CONFIG, find_target(ring(), CONFIG))
    for _ in range(7):  # in the middle of the second epoch
        broken.advance()
    state = broken.state()
    other = Trainer(model(), ring(), CONFIG, find_target(ring(), CONFIG))
    other.restore(state)
    result = other.run()
    for name, weight in whole.weights.items():
        assert torch.equal(weight, result.weights[name])


def test_blocks_are_another_run_than_random_nodes():
    trainer = Trainer(model(), ring(), CONFIG, find_target(ring(), CONFIG))
    random = Trainer(
        model(), ring(), replace(CONFIG, batches="random"), find_target(ring(), CONFIG)
    )
    trainer.advance()
    random.advance()
    ours, theirs = (
        t.minibatches.visits.batches(48, torch.Generator().manual_seed(0), t.minibatches.run)
        for t in (trainer, random)
    )
    assert (ours[0][0].diff() == 1).sum() > 30
    assert (theirs[0][0].diff() == 1).sum() < 10


@pytest.mark.parametrize("block", [1, 7, 48, 1000])
def test_every_node_is_visited_once_an_epoch(block):
    visited = []
    fit(
        model(),
        ring(),
        replace(CONFIG, block=block, epochs=1),
        on_batch=lambda batch: visited.append(batch.nodes),
    )
    assert torch.equal(torch.cat(visited).sort().values, torch.arange(240))


def test_blocks_reach_the_score_of_random_nodes():
    scores = [
        fit(model(), ring(), replace(CONFIG, batches=batches, epochs=15)).val
        for batches in ("random", "blocks")
    ]
    assert all(score is not None and score > 0.85 for score in scores)


def test_a_run_longer_than_a_minibatch_is_refused():
    with refused():
        MiniBatches(model(), ring(), batch_size=16, run=17)
    with refused():
        TrainConfig(block=0)
