"""Scores of pairs against their definitions, with ties."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from sklearn.metrics import average_precision_score, roc_auc_score
from torch import Tensor

from tests.messages import refused
from tests.targets.test_pair_split import pairs_of, undirected_graph
from tests.theory.problems import random_graph
from vrgcn.graph.pairs import Pairs
from vrgcn.pairs.decoders import DECODERS
from vrgcn.pairs.negatives import drawn_negatives
from vrgcn.targets import ranking
from vrgcn.targets.best import best_partners
from vrgcn.targets.pair_rules import simple_rules
from vrgcn.targets.pair_split import split_pairs
from vrgcn.targets.ranking import (
    EmbeddedEdges,
    collapse_note,
    pair_metric,
    score_edges,
)
from vrgcn.tasks.metrics import auc_of, precision_of

# Decoders, for pairs with a direction and without; complex scores depend on it.
SCORED = [(name, way) for name in DECODERS for way in (True, False) if way or name != "complex"]


NONE = torch.empty(0, 2, dtype=torch.int64)


class Table:
    """Scores as a matrix has them."""

    def __init__(self, scores: Tensor) -> None:
        self.scores = scores

    def score(self, pairs: Tensor) -> Tensor:
        return self.scores[pairs[:, 0], pairs[:, 1]]

    def against(self, sources: Tensor, direction: int = 0) -> Tensor:
        return self.scores[sources].clone()


def symmetric(nodes: int, levels: int) -> Tensor:
    """Scores with many ties."""
    generator = torch.Generator().manual_seed(0)
    scores = torch.randint(levels, (nodes, nodes), generator=generator).float()
    return scores + scores.t()


@pytest.mark.parametrize("levels", [3, 10_000])
def test_auc_and_ap_are_those_of_scikit_learn(levels: int) -> None:
    generator = torch.Generator().manual_seed(levels)
    true = torch.randint(levels, (83,), generator=generator).float() + levels / 5
    false = torch.randint(levels, (61,), generator=generator).float()
    labels = [1] * 83 + [0] * 61
    scores = torch.cat([true, false]).numpy()
    assert auc_of(true, false) == pytest.approx(roc_auc_score(labels, scores), abs=1e-12)
    assert precision_of(true, false) == pytest.approx(
        average_precision_score(labels, scores), abs=1e-12
    )


def test_a_constant_score_gives_auc_one_half_and_the_ranks_of_chance() -> None:
    pairs = pairs_of(split_pairs(undirected_graph()))
    nodes = pairs.num_nodes
    found = score_edges(Table(torch.zeros(nodes, nodes)), pairs, "test")
    assert found["auc"] == 0.5
    assert found["ap"] == 0.5
    degrees = pairs.known.degrees
    both = torch.cat([pairs.test, pairs.test.flip(1)])
    # A source with d known partners has as many candidates as nodes, but for itself and d - 1.
    candidates = (nodes - degrees[both[:, 0]]).double()
    assert found["hits@10"] == pytest.approx(float((10 / candidates).mean()))
    harmonic = [sum(1 / r for r in range(1, int(c) + 1)) / float(c) for c in candidates]
    assert found["mrr"] == pytest.approx(sum(harmonic) / len(harmonic))


@pytest.mark.parametrize("entries", [ranking.ENTRIES, 100])
@pytest.mark.parametrize("make", [undirected_graph, random_graph])
def test_ranks_are_those_of_a_list_of_all_candidates(make, entries, monkeypatch) -> None:
    """Whatever the size of a chunk is. No two scores are the same."""
    monkeypatch.setattr(ranking, "ENTRIES", entries)
    pairs = pairs_of(split_pairs(make()))
    nodes = pairs.num_nodes
    generator = torch.Generator().manual_seed(5)
    scores = torch.randperm(nodes * nodes, generator=generator).float().view(nodes, nodes)
    found = score_edges(Table(scores), pairs, "test")
    queries = pairs.test.tolist()
    if not pairs.directed:
        queries += [(v, u) for u, v in queries]
    known = {(u, v) for u, v in _entries(pairs.known)}
    earlier = {*map(tuple, torch.cat([pairs.train, pairs.val]).tolist())}
    if not pairs.directed:
        earlier |= {(v, u) for u, v in earlier}
    ranks, gains = [], {}
    for u, v in queries:
        others = [w for w in range(nodes) if w not in (u, v)]
        higher = [w for w in others if scores[u, w] > scores[u, v]]
        ranks.append(1 + sum((u, w) not in known for w in higher))
        place = 1 + sum((u, w) not in earlier for w in higher)
        gains.setdefault(u, []).append(place)
    assert found["mrr"] == pytest.approx(sum(1 / r for r in ranks) / len(ranks))
    assert found["hits@20"] == pytest.approx(sum(r <= 20 for r in ranks) / len(ranks))
    shares = [sum(p <= 20 for p in places) / len(places) for places in gains.values()]
    assert found["recall@20"] == pytest.approx(sum(shares) / len(shares))
    ndcg = [
        sum(1 / math.log2(p + 1) for p in places if p <= 20)
        / sum(1 / math.log2(r + 1) for r in range(1, min(len(places), 20) + 1))
        for places in gains.values()
    ]
    assert found["ndcg@20"] == pytest.approx(sum(ndcg) / len(ndcg))


def _entries(known) -> list[tuple[int, int]]:
    sources, targets = known.partners(torch.arange(known.num_nodes))
    return list(zip(sources.tolist(), targets.tolist(), strict=True))


def test_ties_are_the_mean_over_random_orders() -> None:
    """200 orders; the standard deviation of their mean is below 0.004."""
    pairs = pairs_of(split_pairs(undirected_graph()))
    scores = symmetric(pairs.num_nodes, 4)
    found = score_edges(Table(scores), pairs, "test")
    generator = torch.Generator().manual_seed(0)
    sums = dict.fromkeys(found, 0.0)
    for _ in range(200):
        noise = torch.rand(scores.shape, generator=generator) * 0.5
        for name, value in score_edges(Table(scores + noise), pairs, "test").items():
            sums[name] += value / 200
    for name in ("mrr", "hits@10", "hits@20", "recall@20", "ndcg@20"):
        assert found[name] == pytest.approx(sums[name], abs=0.012)


@pytest.mark.parametrize(("decoder", "directed"), SCORED)
def test_a_decoder_scores_all_pairs_as_it_scores_each(decoder: str, directed: bool) -> None:
    torch.manual_seed(0)
    made = DECODERS[decoder](6, directed).double()
    z = torch.randn(9, 6, dtype=torch.float64)
    scorer = EmbeddedEdges(made, z, Pairs("edges", directed, range(9), range(2, 9), *[NONE] * 3))
    rows = scorer.against(torch.tensor([0, 5]))
    for row, u in enumerate((0, 5)):
        each = scorer.score(torch.tensor([(u, v) for v in range(2, 9)]))
        assert torch.allclose(rows[row], each, atol=1e-12)
    if not directed or decoder not in ("mlp", "complex"):
        assert torch.allclose(made(z[0], z[1]), made(z[1], z[0]))


def test_rules_are_their_formulas_on_training_pairs() -> None:
    pairs = pairs_of(split_pairs(undirected_graph()))
    A = torch.zeros(pairs.num_nodes, pairs.num_nodes)
    u, v = pairs.train.t()
    A[u, v], A[v, u] = 1, 1
    degrees = A.sum(1)
    weights = 1 / degrees.clamp(min=2).log()  # one node alone shares nothing with others
    wanted = {"common neighbours": A @ A, "Adamic-Adar": A @ torch.diag(weights) @ A}
    rules = simple_rules(pairs)
    some = torch.arange(pairs.num_nodes)
    for name, matrix in wanted.items():
        assert torch.allclose(rules[name].against(some), matrix, atol=1e-5)
        assert torch.allclose(rules[name].score(pairs.test), matrix[*pairs.test.t()], atol=1e-5)
    assert torch.equal(rules["popularity"].against(some)[7], degrees)


def test_recommended_partners_are_new_and_in_order() -> None:
    pairs = pairs_of(split_pairs(undirected_graph()))
    scores = symmetric(pairs.num_nodes, 500)
    sources = torch.tensor([5, 3, 70])
    (best,) = best_partners(Table(scores), pairs, sources, 4)
    known = {*_entries(pairs.known)}
    for u in sources.tolist():
        rows = best.pairs[:, 0] == u
        free = [w for w in range(pairs.num_nodes) if w != u and (u, w) not in known]
        wanted = sorted(free, key=lambda w: (-scores[u, w], w))[:4]
        assert best.pairs[rows, 1].tolist() == wanted
        assert best.ranks[rows].tolist() == [1, 2, 3, 4]


def test_a_node_that_has_few_new_partners_gets_these_alone() -> None:
    train = torch.tensor([(0, 2), (0, 3)])
    pairs = Pairs("edges", True, range(5), range(5), train, train[:0], train[:0])
    (best,) = best_partners(Table(torch.ones(5, 5)), pairs, torch.tensor([0]), 4)
    assert best.pairs.tolist() == [[0, 1], [0, 4]]


def test_a_collapse_is_told_and_embeddings_that_differ_are_none() -> None:
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(50, 8, generator=generator)
    assert collapse_note(noise) is None
    assert collapse_note(1 + 0.1 * noise) is None
    for z in (torch.ones(50, 8), 1 + 1e-3 * noise, torch.zeros(50, 8)):
        note = collapse_note(z)
        assert note is not None
        assert note.startswith("the embeddings have collapsed")


def test_any_number_of_places_is_a_metric() -> None:
    pairs = pairs_of(split_pairs(undirected_graph()))
    table = Table(symmetric(pairs.num_nodes, 10_000))
    names = ("hits@1", "hits@50", "hits@100", "recall@5", "ndcg@50", "mrr")
    found = score_edges(table, pairs, "test", names)
    assert list(found) == list(names)
    assert found["hits@1"] <= found["mrr"] <= found["hits@50"] <= found["hits@100"] <= 1
    assert [pair_metric(name).title for name in names][:4] == [
        *("Hits@1", "Hits@50", "Hits@100", "recall@5")
    ]
    for wrong in ("hits@0", "hits", "hits@-1", "precision@5", "accuracy"):
        with refused():
            pair_metric(wrong)


def given(pairs: Pairs, negatives: Tensor) -> Pairs:
    return replace(pairs, given={"test": negatives}, negatives={"test": negatives})


def test_hits_among_given_negatives_are_those_of_ogb() -> None:
    """The share of pairs above the K-th highest negative; no two scores are the same."""
    pairs = pairs_of(split_pairs(undirected_graph()))
    nodes = pairs.num_nodes
    generator = torch.Generator().manual_seed(5)
    table = Table(torch.randperm(nodes * nodes, generator=generator).float().view(nodes, nodes))
    negatives = drawn_negatives(pairs, 40, generator)
    names = ("hits@3", "hits@20", "hits@40", "hits@100", "mrr", "auc")
    found = score_edges(table, given(pairs, negatives), "test", names)
    true, false = table.score(pairs.test), table.score(negatives).sort(descending=True).values
    for k in (3, 20, 40):
        expected = float((true > false[k - 1]).double().mean())
        assert found[f"hits@{k}"] == pytest.approx(expected)
    assert found["hits@100"] == 1  # fewer negatives than places
    ranks = 1 + (false[None] > true[:, None]).sum(1)
    assert found["mrr"] == pytest.approx(float((1 / ranks).mean()))
    assert found["auc"] == pytest.approx(float((true[:, None] > false).double().mean()))


def test_ties_with_given_negatives_are_the_mean_over_orders() -> None:
    pairs = pairs_of(split_pairs(undirected_graph()))
    negatives = drawn_negatives(pairs, 9, torch.Generator().manual_seed(0))
    table = Table(torch.zeros(pairs.num_nodes, pairs.num_nodes))
    found = score_edges(table, given(pairs, negatives), "test", ("hits@1", "hits@4", "mrr"))
    assert found["hits@1"] == pytest.approx(0.1)
    assert found["hits@4"] == pytest.approx(0.4)
    assert found["mrr"] == pytest.approx(sum(1 / r for r in range(1, 11)) / 10)


def test_candidates_of_a_source_are_scored_once() -> None:
    pairs = pairs_of(split_pairs(undirected_graph()))

    class Counting(Table):
        asked = 0

        def against(self, sources: Tensor, direction: int = 0) -> Tensor:
            self.asked += len(sources)
            return super().against(sources)

    table = Counting(symmetric(pairs.num_nodes, 50))
    score_edges(table, pairs, "test", ("mrr",))
    assert table.asked == len(pairs.test.flatten().unique())
    assert table.asked < 2 * len(pairs.test)


@pytest.mark.parametrize("levels", [2, 5, 10_000])
@pytest.mark.parametrize("k", [1, 5, 20])
def test_first_places_have_the_gains_of_all_places(k: int, levels: int) -> None:
    """Ties reach over the k-th place, and a query may be left out for its own source."""
    pairs = pairs_of(split_pairs(undirected_graph()))
    scorer = Table(symmetric(pairs.num_nodes, levels))
    queries = torch.cat([pairs.test, pairs.test.flip(1), pairs.train[:9]])
    gains = 1 / torch.arange(1, k + 1).double()
    found, wanted = (
        part.mean_of(gains)
        for part in (
            ranking.first_ranks(scorer, pairs, queries, pairs.known_in_training, k),
            ranking.ranks(scorer, pairs, queries, pairs.known_in_training),
        )
    )
    assert wanted.max() > 0
    torch.testing.assert_close(found, wanted)
