"""Things that are later than the cut-off of a split by time are found."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from vrgcn import Graph, load_graph, split_pairs
from vrgcn.leaks import Finding, Later, find_leaks

USERS, ITEMS = 60, 40


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Orders and visits of 2026, the visits without times; users who logged in until December."""
    rng = np.random.default_rng(0)
    orders = pd.DataFrame(
        {"user": rng.integers(USERS, size=500), "item": rng.integers(ITEMS, size=500)}
    ).drop_duplicates()
    start = np.datetime64("2026-01-01")
    orders["time"] = start + rng.integers(364, size=len(orders)).astype("timedelta64[D]")
    visits = pd.DataFrame({"user": range(USERS), "item": np.arange(USERS) % ITEMS})
    days = rng.integers(364, size=USERS).astype("timedelta64[D]")
    users = pd.DataFrame({"id": range(USERS), "joined": start, "login": start + days})
    users["joined"] -= rng.integers(99, size=USERS).astype("timedelta64[D]")
    Graph.from_tables(
        {"user": users, "item": pd.DataFrame({"id": range(ITEMS), "price": range(ITEMS)})},
        {("user", "bought", "item"): orders, ("user", "visited", "item"): visits},
        keep="bought.time",
        out=tmp_path / "store",
    )
    return tmp_path / "store"


def found(store: Path, until: str) -> list[Finding]:
    whole = load_graph(store)
    graph = split_pairs(whole, "user-bought-item", train_until=until)
    return find_leaks(graph, later=Later.of(whole, store, until))


def test_a_column_that_was_filled_in_after_the_cut_off_and_edges_without_times_are_found(
    store: Path,
) -> None:
    column, relation = found(store, "2026-06")
    assert column.severity == "high"
    assert "column 'user.login' is later than 2026-06" in column.text
    assert relation.severity == "medium"
    assert "the edges of user-visited-item have no times" in relation.text


def test_after_the_last_date_nothing_is_later(store: Path) -> None:
    late = [finding for finding in found(store, "2026-12-20") if "login" in finding.text]
    assert [finding.severity for finding in late] == ["high"]  # some logged in later
    whole = load_graph(store)
    graph = split_pairs(whole, "user-bought-item")
    none = find_leaks(graph, later=Later.of(whole, store, "2027"))
    assert [finding.check for finding in none] == ["time"]  # visits have no times at all
    assert find_leaks(graph) == []


def test_the_command_takes_the_cut_off(vrgcn, store: Path) -> None:
    flags = ("--predict", "user-bought-item", "--train-until", "2026-06")
    code, out, error = vrgcn("audit", store, *flags, "--strict")
    assert code == 1, error
    assert "high: column 'user.login' is later than 2026-06" in out
    assert "vrgcn import --drop user.login" in out
