"""Questions about a time: live answers are those of `predict`, and facts change no earlier one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from tests.graph.timed import PATH, dated_graph
from tests.messages import refused
from vrgcn import Graph, ModelConfig, predict
from vrgcn.costs.order import build_for
from vrgcn.graph.dated import DAY, TimedRows
from vrgcn.graph.new_rows import with_rows
from vrgcn.graph.scaling import Scaling
from vrgcn.inference.saved import SavedModel
from vrgcn.live.live import Live


def saved_model(graph: Graph) -> SavedModel:
    model = build_for(ModelConfig(hidden=6, layers=2, jumping="cat"), graph, 2, seed=0).double()
    scaling = Scaling.fit("clipped", graph.features, graph.train)
    return SavedModel(model.eval(), "mean", scaling, classes=["no", "yes"])


def live_graph() -> Live:
    graph = dated_graph()
    graph = graph.with_features(graph.features.double())
    return Live(saved_model(graph), graph)


def day(number: float) -> str:
    return str(np.datetime64(int(number * DAY), "s"))


def asked_of(live: Live, customers: list[int], days: list[float]) -> torch.Tensor:
    """What `predict` answers on the changed graph."""
    graph = live.graph()
    rows = TimedRows(
        np.array([int(d * DAY) for d in days], float), {PATH.entity: np.array(customers)}
    )
    return predict(live.saved, with_rows(graph, rows))  # which scales them as the model needs


def test_answers_are_those_of_predict_also_of_facts_that_came_in() -> None:
    live = live_graph()
    customers, days = [0, 3, 3, 7, 11], [20.5, 60.25, 101, 101, 300]
    rows = [{"customer": f"c{c}", "at": day(d)} for c, d in zip(customers, days, strict=True)]
    before = live.ask(rows).outputs
    torch.testing.assert_close(before, asked_of(live, customers, days), rtol=0, atol=1e-12)
    facts = [
        {"id": 900, "features": [9.0, -9.0], "date": day(100.5)},
        {"id": 901, "features": [-5.0, 5.0], "date": day(250)},
    ]
    with live.changes() as changes:
        changes.add_nodes(facts, kind="order")
        changes.add_edges([("c3", 900), ("c11", 901)], relation="customer-of-order")
    after = live.ask(rows).outputs
    torch.testing.assert_close(after, asked_of(live, customers, days), rtol=0, atol=1e-12)
    assert (after != before).any(1).tolist() == [False, False, True, False, True]
    stored = live.predict(list(range(90)), kind="row").outputs  # by facts until their own time
    assert torch.equal(stored, live_graph().predict(list(range(90)), kind="row").outputs)


def test_questions_leave_no_trace_and_one_is_asked_by_name(tmp_path: Path) -> None:
    live = live_graph()
    one = live.ask(customer="c3", at=day(80))
    frame = live.ask(pd.DataFrame({"customer": ["c3"], "at": [day(80)]}))
    assert torch.equal(one.outputs, frame.outputs)
    assert one.to_arrow().column_names == ["id", "label", "p_no", "p_yes"]
    assert live.num_nodes == dated_graph().num_nodes
    assert live.version == 0
    many = live.ask([{"customer": "c3", "at": day(80)}] * 600)
    torch.testing.assert_close(many.outputs, one.outputs.expand(600, -1), rtol=0, atol=1e-12)


def test_times_of_facts_stay_in_a_saved_state(tmp_path: Path) -> None:
    live = live_graph()
    live.add_nodes({"id": 900, "features": [9.0, -9.0], "date": day(100.5)}, kind="order")
    live.add_edges(("c3", 900), relation="customer-of-order")
    wanted = live.ask(customer="c3", at=day(120)).outputs
    live.save(tmp_path / "state")
    again = Live.open(tmp_path / "state", live.saved)
    assert torch.equal(again.ask(customer="c3", at=day(120)).outputs, wanted)
    live._fold()
    assert torch.equal(live.ask(customer="c3", at=day(120)).outputs, wanted)


def test_a_fact_needs_its_time_and_no_edge_leads_back_in_time() -> None:
    live = live_graph()
    with refused():
        live.add_nodes({"id": 900, "features": [1.0, 2.0]}, kind="order")
    with refused():
        live.add_nodes({"id": 900, "features": [1.0, 2.0], "date": "soon"}, kind="order")
    with refused():
        live.add_edges((239, 0), relation="order-last-row")
    assert live.version == 0


@pytest.mark.parametrize("rows", [[], [{"customer": "c1"}], [{"customer": "c1", "at": "soon"}]])
def test_questions_that_cannot_be_read_are_refused(rows: list) -> None:
    with refused():
        live_graph().ask(rows)


def test_a_graph_without_rows_of_time_has_no_questions() -> None:
    graph = dated_graph().replace(dated=None, kept={})
    graph = graph.with_features(graph.features.double())
    with refused():
        Live(saved_model(graph), graph).ask(customer="c1", at="2024-01-01")
