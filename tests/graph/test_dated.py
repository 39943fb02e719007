"""Which facts a row sees: those of its entity that were known by its time, the last ones first."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from vrgcn import Graph
from vrgcn.graph.dated import (
    DAY,
    NEVER,
    Dated,
    FactPath,
    Lookback,
    TimedRows,
    Timeline,
    later_nodes,
)
from vrgcn.graph.kept import Column
from vrgcn.graph.scaling import scale_graph

PATH = FactPath("result", "driver-of-row", "driver-of-result", {"result-last-row": 1})
TEAM = FactPath(
    *("team", "driver-of-row", "team-of-result", {"result-last_by_team-row": 2}),
    by=(("driver-of-result", "team-of-result"),),
)
# Drivers are nodes 0 and 1, teams 2 and 3, results 4 to 9.
DRIVERS = np.array([0, 0, 1, 1, 0, 1]), np.arange(4, 10)
TEAMS = np.array([2, 2, 3, 2, 3, 3]), np.arange(4, 10)
DAYS = np.array([1.0, 3, 2, 4, 5, NEVER])
EDGES = {"driver-of-result": DRIVERS, "team-of-result": TEAMS}


def lookback(levels: np.ndarray | None = None) -> Lookback:
    time = np.concatenate([np.full(4, -np.inf), DAYS * DAY])
    return Lookback(EDGES.__getitem__, time, levels)


def asked(days: list[float], drivers: list[int], levels: list[int] | None = None) -> TimedRows:
    own = None if levels is None else np.array(levels, np.int8)
    return TimedRows(np.array(days) * DAY, {"driver-of-row": np.array(drivers)}, own)


def test_a_row_sees_facts_of_its_time_and_none_that_is_later() -> None:
    seen = lookback().seen(PATH, asked([0, 1, 2.9, 3, 9, 9], [0, 0, 0, 0, 0, 1]))
    rows, facts = seen.last(1)
    assert list(zip(rows, facts, strict=True)) == [(1, 4), (2, 4), (3, 5), (4, 8), (5, 7)]
    rows, facts = seen.last(2)
    assert facts[rows == 4].tolist() == [5, 8]
    counts, days = np.expm1(seen.features.astype(np.float64)).T
    assert counts.round(4).tolist() == [0, 1, 1, 2, 3, 2]
    assert days.round(1).tolist() == pytest.approx([36525, 0, 1.9, 0, 4, 5], abs=0.05)


def test_the_other_entity_is_that_of_the_last_fact_that_names_one() -> None:
    seen = lookback().seen(TEAM, asked([2, 4, 5, 0], [0, 1, 0, 0]))
    rows, facts = seen.last(2)
    # Driver 0 is in team 2 until day 5; driver 1 is in team 2 on day 4, and before in team 3.
    assert list(zip(rows, facts, strict=True)) == [(0, 4), (1, 5), (1, 7), (2, 6), (2, 8)]


def test_a_row_sees_no_target_of_a_later_split() -> None:
    levels = np.array([0, 0, 0, 0, 0, 1, 0, 0, 2, 0], np.int8)
    seen = lookback(levels).seen(PATH, asked([9, 9, 9], [0, 0, 0], [0, 1, 2]))
    assert seen.last(1)[1].tolist() == [4, 5, 8]


def test_a_row_without_an_entity_sees_nothing() -> None:
    seen = lookback().seen(PATH, asked([9], [-1]))
    assert not len(seen.last(1)[0])
    assert np.expm1(seen.features[0]).tolist() == pytest.approx([0, 36525], abs=0.05)


@given(seed=st.integers(0, 10_000), count=st.integers(1, 6))
@pytest.mark.parametrize("spread", [3, 40])
def test_a_timeline_agrees_with_a_loop_over_all_facts(seed: int, count: int, spread: int) -> None:
    rng = np.random.default_rng(seed)
    entities, times = rng.integers(5, size=30), rng.integers(spread, size=30).astype(float)
    times[rng.random(30) < 0.1] = NEVER
    asked_for, moments = rng.integers(6, size=12), rng.integers(-1, spread, size=12).astype(float)
    timeline = Timeline(entities, np.arange(30), times)
    first, end = timeline.until(asked_for, moments)
    rows, facts = timeline.last(first, end, count)
    for row in range(12):
        seen = [f for f in range(30) if entities[f] == asked_for[row] and times[f] <= moments[row]]
        seen.sort(key=lambda fact: (times[fact], fact))
        assert facts[rows == row].tolist() == seen[-count:]
        assert end[row] - first[row] == len(seen)
        last = times[seen[-1]] if seen else -np.inf
        assert timeline.last_times(first, end)[row] == last


def test_scaling_learns_from_no_fact_that_is_later_than_the_last_training_row() -> None:
    facts = torch.arange(6.0)[:, None]
    graph = Graph.from_kinds(
        {"row": torch.ones(3, 1), "result": facts, "driver": 2},
        {("driver", "of", "result"): torch.tensor([[0, 1], [0, 1]])},
        labels={"row": torch.tensor([0, 1, 1])},
        **{"train": [0, 1], "test": [2], "one_way": [("driver", "of", "result")]},
        node_columns={"row": {"at": dates([1, 3, 9])}, "result": {"date": dates(range(1, 7))}},
    )
    dated = Dated("row", {"row": "at", "result": "date"})
    assert dated.moments(graph).tolist()[:2] == [DAY, 3 * DAY]
    assert later_nodes(graph.replace(dated=dated)).tolist() == [2, 6, 7, 8]
    _, plain = scale_graph(graph, "standard")
    _, known = scale_graph(graph.replace(dated=dated), "standard")
    assert plain.mean is not None
    assert known.mean is not None
    assert (plain.mean[1], known.mean[1]) == (2.5, 1.0)


def dates(days: Iterable[float]) -> Column:
    return Column("date", torch.tensor([day * DAY for day in days], dtype=torch.float64))


def test_what_is_known_of_time_is_the_same_after_json() -> None:
    dated = Dated("row", {"row": "at", "result": "date"}, (PATH, TEAM), "past_row", 86_400.0)
    assert Dated.read(dated.entries()) == dated
    assert Dated.reads(dated.entries())
    assert not Dated.reads({"rows": "row"})
    assert not Dated.reads(dated.entries() | {"known_after": "30d"})
    assert not Dated.reads(dated.entries() | {"paths": [{"name": 1}]})
