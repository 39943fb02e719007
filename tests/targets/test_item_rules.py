"""Rules of one matrix between targets, against their formulas."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.targets.test_pair_rules import USERS, matrix, tastes
from vrgcn.targets import item_rules
from vrgcn.targets.item_rules import ease, item_neighbours, turbo_cf
from vrgcn.targets.ranking import score_edges

SOURCES = torch.arange(USERS)


def neighbours_by_hand(R: np.ndarray, k: int) -> np.ndarray:
    D = np.maximum(R.sum(0), 1)
    cosines = R.T @ R / np.sqrt(np.outer(D, D))
    np.fill_diagonal(cosines, 0)
    B = np.zeros_like(cosines)
    for v in range(len(B)):
        near = np.argsort(-cosines[:, v], kind="stable")[:k]
        B[near, v] = cosines[near, v]
    return B


def regressions_by_hand(R: np.ndarray, ridge: float) -> np.ndarray:
    """Each target by ridge regression on all others, one after the other."""
    B = np.zeros((R.shape[1], R.shape[1]))
    for v in range(R.shape[1]):
        others = np.delete(np.arange(R.shape[1]), v)
        X = R[:, others]
        B[others, v] = np.linalg.solve(X.T @ X + ridge * np.eye(len(others)), X.T @ R[:, v])
    return B


def filter_by_hand(R: np.ndarray, share: float, power: float, degree: int) -> np.ndarray:
    C, D = (np.maximum(R.sum(side), 1) for side in (1, 0))
    T = R / C[:, None] ** share / D ** (1 - share)
    P = (T.T @ T) ** power
    return P if degree == 1 else 2 * P - P @ P


def test_ease_is_a_ridge_regression_of_each_target_on_all_others() -> None:
    pairs = tastes()
    R = matrix(pairs)
    found = ease(pairs, (3.0,)).against(SOURCES)
    assert found.numpy() == pytest.approx(R @ regressions_by_hand(R, 3.0), abs=1e-5)


def test_item_neighbours_add_the_cosines_of_the_nearest(monkeypatch) -> None:
    pairs = tastes()
    R = matrix(pairs)
    whole = item_neighbours(pairs, (4,))
    expected = R @ neighbours_by_hand(R, 4)
    same = np.isclose(whole.against(SOURCES).numpy(), expected, atol=1e-5)
    assert same.mean() > 0.9  # ties at the fourth place
    every = item_neighbours(pairs, (500,)).against(SOURCES)
    assert every.numpy() == pytest.approx(R @ neighbours_by_hand(R, 500), abs=1e-5)
    monkeypatch.setattr(item_rules, "ENTRIES", 3 * R.shape[1])
    assert torch.equal(item_neighbours(pairs, (4,)).against(SOURCES), whole.against(SOURCES))


@pytest.mark.parametrize("degree", [1, 2])
def test_turbo_cf_is_its_polynomial(degree: int, monkeypatch) -> None:
    pairs = tastes()
    R = matrix(pairs)
    setting = 0.6, 0.7, degree
    expected = R @ filter_by_hand(R, *setting)
    found = turbo_cf(pairs, (setting,))
    assert found.against(SOURCES).numpy() == pytest.approx(expected, abs=1e-4)
    own = expected[pairs.test[:, 0], pairs.test[:, 1] - pairs.targets.start]
    assert found.score(pairs.test).numpy() == pytest.approx(own, abs=1e-4)
    if degree == 1:
        monkeypatch.setattr(item_rules, "_DENSE", 0)
        sparse = turbo_cf(pairs, (setting,)).against(SOURCES)
        assert sparse.numpy() == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("rule", [item_neighbours, ease, turbo_cf])
def test_settings_are_chosen_on_validation_pairs_and_test_pairs_play_no_part(rule) -> None:
    pairs = tastes()
    other = replace(pairs, test=pairs.test[:1], negatives={})
    chosen = rule(pairs).against(SOURCES)
    assert torch.equal(rule(other).against(SOURCES), chosen)
    settings = {
        item_neighbours: (1, 10),
        ease: (1e9, 10.0),
        turbo_cf: ((1.0, 9.0, 1), (0.5, 1.0, 1)),
    }
    scores = [
        score_edges(rule(pairs, (setting,)), pairs, "val", ("ndcg@20",))["ndcg@20"]
        for setting in settings[rule]
    ]
    best = rule(pairs, (settings[rule][int(np.argmax(scores))],))
    assert len({*scores}) == 2
    assert torch.equal(rule(pairs, settings[rule]).against(SOURCES), best.against(SOURCES))
    without = replace(pairs, val=pairs.val[:0])
    first = rule(pairs, settings[rule][:1])
    assert torch.equal(rule(without, settings[rule]).against(SOURCES), first.against(SOURCES))


def test_rules_that_are_too_large_are_left_out(monkeypatch) -> None:
    pairs = tastes()
    assert [*item_rules.item_rules(pairs)] == ["item neighbours", "EASE", "Turbo-CF"]
    monkeypatch.setattr(item_rules, "_DENSE", 5)
    assert [*item_rules.item_rules(pairs)] == ["item neighbours", "Turbo-CF"]
    monkeypatch.setattr(item_rules, "_ENTRIES", 5)
    assert [*item_rules.item_rules(pairs)] == ["item neighbours"]
