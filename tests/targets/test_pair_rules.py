"""Simple rules against their definitions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix

from tests.targets.test_pair_split import pairs_of, undirected_graph
from vrgcn import Graph
from vrgcn.graph.pairs import Pairs
from vrgcn.targets import factors, graph_filter
from vrgcn.targets.graph_filter import GraphFilter, through_sources
from vrgcn.targets.item_rules import item_rules
from vrgcn.targets.pair_rules import MatrixFactorisation, simple_rules
from vrgcn.targets.pair_split import split_pairs
from vrgcn.targets.ranking import score_edges

USERS, ITEMS = 30, 20


def tastes() -> Pairs:
    """Users of two tastes with items of two sorts."""
    every = torch.cartesian_prod(torch.arange(USERS), torch.arange(ITEMS))
    liked = every[(every.sum(1) % 2 == 0) & (torch.rand(len(every)) < 0.7)]
    graph = Graph.from_kinds({"user": USERS, "item": ITEMS}, {("user", "likes", "item"): liked.t()})
    return pairs_of(split_pairs(graph, "user-likes-item"))


def matrix(pairs: Pairs) -> np.ndarray:
    A = np.zeros((len(pairs.sources), len(pairs.targets)))
    for u, v in pairs.train.tolist():
        A[u - pairs.sources.start, v - pairs.targets.start] = 1
        if not pairs.directed:
            A[v, u] = 1
    return A


@pytest.mark.parametrize("width", [3, 500])
@pytest.mark.parametrize("make", [tastes, lambda: pairs_of(split_pairs(undirected_graph()))])
def test_factors_are_the_singular_vectors(make, width: int, monkeypatch) -> None:
    monkeypatch.setattr(factors, "_ROUNDS", 200)
    pairs = make()
    A = matrix(pairs)
    left, right = (np.maximum(A.sum(side), 1) ** 0.25 for side in (1, 0))
    U, s, V = np.linalg.svd(A / left[:, None] / right)
    rank = min(width, *A.shape)
    expected = (U[:, :rank] * s[:rank]) @ V[:rank] * right
    found = MatrixFactorisation(pairs, width)
    sources = torch.arange(pairs.sources.start, pairs.sources.stop)
    assert found.against(sources).numpy() == pytest.approx(expected, abs=2e-3)
    asked = pairs.test
    own = expected[asked[:, 0] - pairs.sources.start, asked[:, 1] - pairs.targets.start]
    assert found.score(asked).numpy() == pytest.approx(own, abs=2e-3)


def test_few_rounds_find_what_users_like_and_the_same_bits_again() -> None:
    pairs = tastes()
    found = MatrixFactorisation(pairs, 2)
    assert score_edges(found, pairs, "test", ("auc",))["auc"] > 0.7  # 0.88 if perfect
    assert torch.equal(found.left, MatrixFactorisation(pairs, 2).left)


def test_the_work_of_large_relations_is_bounded(monkeypatch) -> None:
    pairs = tastes()
    calls = []
    qr = np.linalg.qr
    monkeypatch.setattr(np.linalg, "qr", lambda Q: (calls.append(1), qr(Q))[1])
    monkeypatch.setattr(factors, "_WORK", 1)
    MatrixFactorisation(pairs, 2)
    assert len(calls) == 2  # one round
    monkeypatch.setattr(factors, "_WORK", 1 << 40)
    MatrixFactorisation(pairs, 2)
    assert len(calls) == 2 + 2 * factors._ROUNDS


def test_the_graph_filter_is_the_formula_of_gf_cf(monkeypatch) -> None:
    monkeypatch.setattr(factors, "_ROUNDS", 200)
    monkeypatch.setattr(graph_filter, "_WIDTH", 3)
    pairs = tastes()
    R = matrix(pairs)
    C, D = (np.maximum(R.sum(side), 1) for side in (1, 0))
    T = R / np.sqrt(C)[:, None] / np.sqrt(D)
    V = np.linalg.svd(T)[2][:3].T
    low = np.diag(D**-0.5) @ V @ V.T @ np.diag(D**0.5)
    expected = R @ (T.T @ T + 0.3 * low)
    found = GraphFilter(pairs)
    sources = torch.arange(USERS)
    assert found.against(sources).numpy() == pytest.approx(expected, abs=2e-3)
    own = expected[pairs.test[:, 0], pairs.test[:, 1] - pairs.targets.start]
    assert found.score(pairs.test).numpy() == pytest.approx(own, abs=2e-3)
    assert found.score(pairs.test.flip(0)).numpy() == pytest.approx(own[::-1], abs=2e-3)


def test_ways_over_other_sources_are_the_same_in_small_pieces(monkeypatch) -> None:
    pairs = tastes()
    R = csr_matrix(matrix(pairs).astype(np.float32))
    whole = through_sources(R, R.T.tocsr())
    assert whole == pytest.approx(matrix(pairs) @ matrix(pairs).T @ matrix(pairs))
    monkeypatch.setattr(graph_filter, "ENTRIES", 4 * USERS)
    assert (through_sources(R, R.T.tocsr()) == whole).all()


def test_repeat_is_a_rule_where_pairs_repeat() -> None:
    pairs = tastes()
    assert "repeat" not in simple_rules(pairs)
    again = replace(pairs, test=torch.cat([pairs.test[:4], pairs.train[:4]]))
    found = simple_rules(again)["repeat"]
    assert found.score(again.test).tolist() == [0] * 4 + [1] * 4
    sources = torch.arange(USERS)
    assert torch.equal(found.against(sources), torch.from_numpy(matrix(pairs)).float())


def test_rules_see_training_pairs_alone() -> None:
    pairs = tastes()
    other = replace(pairs, val=pairs.val[:1], test=pairs.val[1:2])
    sources = torch.arange(USERS)
    chosen = item_rules(pairs)  # settings of these are chosen on validation pairs
    for name, rule in simple_rules(pairs, 4).items():
        if name in chosen:
            continue
        assert torch.equal(rule.against(sources), simple_rules(other, 4)[name].against(sources))
