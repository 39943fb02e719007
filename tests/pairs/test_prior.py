"""The decoder lift: cosines that are learned, and the nodes' numbers of training pairs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from tests.messages import refused
from tests.pairs.test_relations import BOUGHT, store
from tests.targets.test_pair_split import pairs_of
from vrgcn import Graph, PairModel, TrainConfig, fit, predict, split_pairs
from vrgcn.pairs.prior import log_counts, negative_weights, usual_temperature
from vrgcn.targets.ranking import EmbeddedEdges, collapse_note

WIDTH = 8
SETTINGS: dict[str, Any] = {
    "loss": "softmax",
    "negative_sampling": "shared",
    "negatives": 10,
    "temperature": 0.2,
    "pair_batches": "nodes",
    "estimator": "exact",
    "batch_size": 16,
    "epochs": 2,
    "diagnostics": 0,
}


def made(graph: Graph, encoder: str = "lightgcn") -> PairModel:
    torch.manual_seed(0)
    return PairModel(
        encoder,
        "lift",
        relation=BOUGHT,
        directed=True,
        in_features=graph.num_features,
        classes=WIDTH,
        nodes=graph.num_nodes,
        layers=2,
    )


def trained(graph: Graph, **settings: Any) -> PairModel:
    model = made(graph)
    fit(model, graph, TrainConfig(**{**SETTINGS, **settings}))
    return model


@pytest.mark.parametrize("ways", [{}, {"pair_batches": "pairs"}, {"estimator": "two-way"}])
def test_a_ranking_adds_the_logs_of_the_numbers_of_training_pairs(ways: dict[str, Any]) -> None:
    graph = split_pairs(store(), BOUGHT)
    pairs = pairs_of(graph)
    model = trained(graph, **ways)
    z = predict(model, graph, kind="all")
    assert z.shape == (graph.num_nodes, WIDTH + 1)
    counts = torch.bincount(pairs.train.flatten(), minlength=graph.num_nodes).clamp(min=1)
    found = EmbeddedEdges(model.decoder, z, pairs).score(pairs.test) / 0.2
    u, v = pairs.test.t()
    cosines = F.cosine_similarity(z[u, :-1], z[v, :-1])
    assert torch.allclose(found, cosines / 0.2 + counts[u].log() + counts[v].log(), atol=1e-4)


def test_training_with_lift_depends_on_training_pairs_alone() -> None:
    graph = split_pairs(store(), BOUGHT)
    pairs = pairs_of(graph)
    one = trained(graph, select="last")
    graph = graph.replace(pairs=replace(pairs, val=pairs.test, test=pairs.val[:3]))
    other = trained(graph, select="last")
    for name, value in one.state_dict().items():
        assert torch.equal(value, other.state_dict()[name]), name


def test_weights_of_negatives_are_their_counts_and_one_on_average() -> None:
    graph = split_pairs(store(), BOUGHT)
    pairs = pairs_of(graph)
    logs = log_counts(pairs, graph.num_nodes)
    weights = negative_weights(logs, pairs.targets)[pairs.targets.start : pairs.targets.stop].exp()
    counts = torch.bincount(pairs.train[:, 1], minlength=graph.num_nodes)[pairs.targets.start :]
    counts = counts[: len(pairs.targets)].clamp(min=1)
    assert torch.allclose(weights, counts / counts.float().mean())


def test_the_usual_temperature_lets_a_cosine_express_the_lift_of_most_pairs() -> None:
    pairs = pairs_of(split_pairs(store(), BOUGHT))
    counts = torch.bincount(pairs.train.flatten()).double()
    u, v = pairs.train.t()
    lifts = (len(pairs.train) / (counts[u] * counts[v])).log()
    found = usual_temperature(pairs)
    assert 0.9 < (lifts <= 1 / found + 1e-6).double().mean() < 1
    every = torch.cartesian_prod(torch.arange(4), torch.arange(4, 9))
    full = replace(pairs, sources=range(4), targets=range(4, 9), train=every)
    assert usual_temperature(full) == 1  # all pairs are linked: no lift at all


def test_a_collapse_is_seen_beside_priors_that_differ() -> None:
    z = torch.cat([torch.ones(20, WIDTH), torch.randn(20, 1)], dim=1)
    decoder = made(split_pairs(store(), BOUGHT)).decoder
    assert collapse_note(z) is None
    assert "collapsed" in str(collapse_note(decoder.learned(z)))


@pytest.mark.parametrize("wrong", [{"loss": "logistic"}, {"negative_sampling": "uniform"}])
def test_lift_says_which_settings_it_learns_by(wrong: dict[str, Any]) -> None:
    with refused():
        trained(split_pairs(store(), BOUGHT), **wrong)


def test_lift_says_which_model_it_needs() -> None:
    with refused():
        made(split_pairs(store(), BOUGHT), "gcn")
