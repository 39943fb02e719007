"""New rows see what stored rows see: facts known by their time."""

from __future__ import annotations

import numpy as np
import torch

from tests.graph.timed import CUSTOMERS, PATH, dated_graph
from tests.messages import refused
from vrgcn import ModelConfig, predict
from vrgcn.costs.order import build_for
from vrgcn.graph.dated import DAY, Lookback, TimedRows
from vrgcn.graph.graph import Graph
from vrgcn.graph.new_rows import with_rows


def asked_of(graph: Graph) -> TimedRows:
    """The graph's own rows, asked about again."""
    span = graph.kinds.range("row")
    A = graph.relations[PATH.entity].adjacency
    who = np.full(len(span), -1)
    who[A.row_of_entry.numpy() - span.start] = A.indices.numpy()
    assert graph.dated is not None
    times = graph.dated.moments(graph)[span.start : span.stop].numpy()
    return TimedRows(times, {PATH.entity: who})


def test_stored_rows_that_are_asked_again_are_predicted_to_the_same_bits() -> None:
    graph = dated_graph()
    asked, some = asked_of(graph), np.array([80, 3, 41, 3])
    again = with_rows(
        graph, TimedRows(asked.times[some], {PATH.entity: asked.entities[PATH.entity][some]})
    )
    for name, part in graph.given.items():
        found = again.given[name]
        assert found.one_way
        if part.target == "row":
            rows = [graph.kinds.range("row").start + row for row in some]
            wanted = [part.adjacency.rows(torch.tensor([row])).indices for row in rows]
            start = again.kinds.range("row").start
            for place, facts in enumerate(wanted):
                assert torch.equal(
                    found.adjacency.rows(torch.tensor([start + place])).indices, facts
                )
    model = build_for(ModelConfig(hidden=6), graph, 2, seed=0)
    assert torch.equal(predict(model, again), predict(model, graph, some))


def test_facts_later_than_a_row_are_not_seen_whoever_asks() -> None:
    graph = dated_graph()
    who = {PATH.entity: np.arange(CUSTOMERS)}
    early, late = (
        with_rows(graph, TimedRows(np.full(CUSTOMERS, day * DAY), who)) for day in (20, 90)
    )
    assert early.dated is not None
    moments = early.dated.moments(early)
    for name in ("order-last-row", "order-last_5-row"):
        for asked in (early, late):
            A = asked.relations[name].adjacency
            assert bool((moments[A.indices] <= asked.dated.moments(asked)[A.row_of_entry]).all())  # type: ignore[union-attr]
        assert early.relations[name].num_edges <= late.relations[name].num_edges


def test_an_unknown_entity_sees_nothing() -> None:
    graph = dated_graph()
    found = with_rows(graph, TimedRows(np.array([50 * DAY]), {PATH.entity: np.array([-1])}))
    assert found.kinds.sizes["row"] == 1
    assert not any(part.num_edges for part in found.given.values() if part.target == "row")


def test_lookback_is_made_once_for_many_questions() -> None:
    graph = dated_graph()
    asked, lookback = asked_of(graph), Lookback.on(graph)
    first, second = (with_rows(graph, asked, lookback=each) for each in (lookback, None))
    assert torch.equal(first.features.to_dense(), second.features.to_dense())


def test_graphs_without_rows_of_time_and_rows_of_other_columns_are_refused() -> None:
    graph = dated_graph()
    asked = asked_of(graph)
    with refused():
        with_rows(graph.replace(dated=None), asked)
    with refused():
        with_rows(graph, asked, np.zeros((90, 1), np.float32))
