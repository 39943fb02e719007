"""Columns that were made of the predicted edges are found; popularity that was known before is
not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch

from vrgcn import Graph, split_pairs
from vrgcn.leaks.columns_of_pairs import columns_made_of_pairs
from vrgcn.leaks.finding import FULL

USERS, ITEMS = 200, 150


def orders() -> pd.DataFrame:
    """Users of different activity buy items at random."""
    rng = np.random.default_rng(0)
    often = rng.gamma(1.5, size=USERS)
    users = rng.choice(USERS, size=3000, p=often / often.sum())
    found = pd.DataFrame({"user": users, "item": rng.integers(ITEMS, size=3000)})
    return found.drop_duplicates()


def graph(**columns: np.ndarray) -> Graph:
    users = pd.DataFrame({"id": range(USERS), **columns})
    items = pd.DataFrame({"id": range(ITEMS), "price": np.arange(ITEMS) % 7 + 0.5})
    made = Graph.from_tables({"user": users, "item": items}, {("user", "bought", "item"): orders()})
    return split_pairs(made, "user-bought-item")


def counts() -> np.ndarray:
    return np.bincount(orders()["user"], minlength=USERS).astype(float)


def test_a_count_of_all_orders_is_found_as_it_is_and_as_a_logarithm() -> None:
    for made in (counts(), np.log1p(counts()), 5 - 2 * counts()):
        [finding] = columns_made_of_pairs(graph(orders=made), FULL)
        assert "'user.orders' may have been made of all pairs" in finding.text
        assert finding.severity == "high"


def test_how_active_a_user_was_before_is_no_leak() -> None:
    rng = np.random.default_rng(4)
    assert list(columns_made_of_pairs(graph(active=rng.poisson(counts())), FULL)) == []


def test_categories_as_many_as_nodes_that_fit_a_busy_one_by_chance_are_no_leak() -> None:
    """53 cities of 59 customers; one of them, alone in a city, began to order late."""
    users = np.concatenate([np.arange(590) % 59, np.full(40, 30)])
    words = np.where(np.arange(630) < 590, np.where(np.arange(630) % 97, "train", "val"), "test")
    bought = pd.DataFrame({"user": users, "item": range(630), "when": words})
    customers = pd.DataFrame({"id": range(59), "city": [f"city {n % 53}" for n in range(59)]})
    items = pd.DataFrame({"id": range(630), "price": np.arange(630) % 7 + 0.5})
    made = Graph.from_tables(
        {"user": customers, "item": items},
        {("user", "bought", "item"): bought},
        keep="bought.when=split",
        max_categories=60,
    )
    split = split_pairs(made, "user-bought-item", split_column="when")
    assert list(columns_made_of_pairs(split, FULL)) == []


def test_a_count_of_training_orders_is_no_leak() -> None:
    pairs = graph(age=np.arange(USERS)).pairs
    assert pairs is not None
    trained = torch.bincount(pairs.train[:, 0], minlength=USERS).double().numpy()
    assert list(columns_made_of_pairs(graph(orders=trained), FULL)) == []


def test_degrees_that_the_import_made_count_training_pairs_alone() -> None:
    rng = np.random.default_rng(1)
    edges = pd.DataFrame(rng.integers(300, size=(2000, 2)), columns=["source", "target"])
    made = Graph.from_pandas(None, edges)
    assert made.names.features is not None
    assert "log_degree" in made.names.features
    split = split_pairs(made)
    assert list(columns_made_of_pairs(split, FULL)) == []
    assert split.pairs is not None
    assert "features made of degrees count only training pairs" in split.pairs.rules
    [finding] = columns_made_of_pairs(split.with_features(made.features), FULL)
    assert "'log_degree'" in finding.text
