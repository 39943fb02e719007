"""Cut-offs in time."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.messages import refused
from vrgcn import Graph
from vrgcn.graph.kept import Column, column_of
from vrgcn.graph.until import Until, check_order, nodes_until, time_of


def dates(*texts: str) -> Column:
    return column_of("t", np.array(texts, "datetime64[s]"), len(texts))


@pytest.mark.parametrize(
    ("until", "last", "next_one"),
    [
        ("2026", "2026-12-31T23:59:59", "2027-01-01"),
        ("2026-06", "2026-06-30T23:59:59", "2026-07-01"),
        ("2026-12", "2026-12-31T23:59:59", "2027-01-01"),
        ("2024-02-29", "2024-02-29T23:59:59", "2024-03-01"),
        ("2026-06-15T12", "2026-06-15T12:59:59", "2026-06-15T13:00"),
        ("2026-06-15 12:30", "2026-06-15T12:30:59", "2026-06-15T12:31"),
        ("2026-06-15T12:30:05", "2026-06-15T12:30:05", "2026-06-15T12:30:06"),
    ],
)
def test_a_moment_lasts_to_the_end_of_what_is_named(until: str, last: str, next_one: str) -> None:
    assert Until(until).not_later(dates(last, next_one, "NaT")).tolist() == [True, False, False]


def test_numbers_are_compared_as_numbers() -> None:
    column = Column("number", torch.tensor([1.0, 7.0, 8.0, torch.nan]).double())
    assert Until("7").not_later(column).tolist() == [True, True, False, False]


@pytest.mark.parametrize("text", ["June", "2026-13", "2025-02-29", "2026-06-15T25", "26-06", ""])
def test_what_is_no_moment_is_refused(text: str) -> None:
    with refused():
        Until(text).not_later(dates("2026-01-01"))


def test_a_date_for_numbers_is_refused() -> None:
    with refused():
        Until("2026-06").not_later(Column("number", torch.zeros(1).double()))


def test_validation_ends_after_training() -> None:
    train, column = Until("2026-06"), dates("2026-01-01")
    check_order(train, Until("2026-07", "val_until"), column)
    with refused():
        check_order(train, Until("2026-05", "val_until"), column)


def test_the_only_dates_are_the_times_and_of_several_the_last_counts_unless_one_is_named() -> None:
    one, two = dates("2026-01-01", "2026-05-01"), dates("2026-03-01", "NaT")
    columns = {"a": one, "b": two, "n": Column("number", torch.zeros(2).double())}
    assert time_of({"a": one}, "edges", None, needed=True) is not None
    assert time_of({}, "edges", None, needed=False) is None
    several = time_of(columns, "edges", None, needed=False)
    assert several is not None
    assert several.values[0] == two.values[0]
    assert several.known.tolist() == [True, False]
    assert time_of(columns, "edges", "b", needed=True) is two
    with refused():
        time_of(columns, "edges", None, needed=True)
    with refused():
        time_of({}, "user-bought-item", None, needed=True)


def test_a_node_is_there_from_its_first_date_on_and_without_one_always() -> None:
    graph = Graph(
        torch.tensor([[0], [1]]),
        torch.eye(4),
        node_columns={
            "made": np.array(["2026-01", "2026-09", "NaT", "2026-09"], "datetime64[M]"),
            "seen": np.array(["2026-12", "2026-12", "2026-12", "2026-02"], "datetime64[M]"),
        },
    )
    there = nodes_until(graph, Until("2026-06"), None)
    assert there is not None
    assert there.tolist() == [True, False, True, True]
    named = nodes_until(graph, Until("2026-06"), "made")
    assert named is not None
    assert named.tolist() == [True, False, True, False]
    assert nodes_until(Graph(torch.tensor([[0], [1]]), torch.eye(2)), Until("2026"), None) is None
