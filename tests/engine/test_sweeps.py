"""Forward-only sweeps: tables made exact one after the other, or refreshed all at once."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.theory.problems import MODELS, Embedded, error, exact_pass, gcn, random_graph
from vrgcn.engine.history import Histories
from vrgcn.engine.setup import set_up
from vrgcn.engine.sweeps import fill_tables, refresh_tables, sweep
from vrgcn.graph import propagation

GRAPH = random_graph()
EVERYONE = torch.arange(GRAPH.num_nodes)
EXACT = 1e-12


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several chunks a sweep."""
    monkeypatch.setattr(propagation, "CHUNK_COST", 700)


def tables() -> Histories:
    return Histories(GRAPH.num_nodes, "float64")


@pytest.mark.parametrize("kind", [*MODELS, "embedded"])
def test_sweeps_make_one_table_after_the_other_exact(kind: str) -> None:
    model = Embedded(3) if kind == "embedded" else MODELS[kind](3)
    *inputs, outputs = exact_pass(model, GRAPH)
    setup, filled = set_up(model, GRAPH), tables()
    first = setup.evaluation.first_table
    fill_tables(model, setup, [EVERYONE] * (3 - first), filled, step=4)
    for level in range(first, 3):
        table = filled.tables[level, "h"]
        assert error(table.values, inputs[level]) < EXACT
        assert (table.written == 4).all()
    assert filled.tables.keys() == {(level, "h") for level in range(first, 3)}
    swept = list(sweep(model, setup, EVERYONE, filled))
    assert len(swept) > 3
    assert error(torch.cat([chunk.outputs for chunk in swept]), outputs) < EXACT


def test_a_refresh_reads_the_tables_as_they_were() -> None:
    """In three layers one refresh makes the first table exact, but not yet the second."""
    model = gcn(3)
    inputs = exact_pass(model, GRAPH)
    setup, stale = set_up(model, GRAPH), tables()
    refresh_tables(model, setup, EVERYONE, stale, step=0)
    assert error(stale.tables[1, "h"].values, inputs[1]) < EXACT
    assert error(stale.tables[2, "h"].values, inputs[2]) > 1e-3
    refresh_tables(model, setup, EVERYONE, stale, step=1)
    assert error(stale.tables[2, "h"].values, inputs[2]) < EXACT


def test_a_refresh_writes_the_rows_that_were_asked_for() -> None:
    chosen, model = torch.tensor([4, 40]), gcn(2)
    table = (written := tables()).table(1, 8)
    refresh_tables(model, set_up(model, GRAPH), chosen, written, step=3)
    assert (table.written == 3).nonzero()[:, 0].tolist() == chosen.tolist()


def test_a_sweep_is_without_dropout_and_leaves_the_mode_between_chunks() -> None:
    model = gcn(2, dropout=0.9).train()
    setup = set_up(model, GRAPH)
    modes, outputs = [], []
    for swept in sweep(model, setup, EVERYONE, tables()):
        modes.append((model.training, torch.is_grad_enabled()))
        outputs.append(swept.outputs)
    assert set(modes) == {(True, True)}
    again = [swept.outputs for swept in sweep(model, setup, EVERYONE, tables())]
    assert torch.equal(torch.cat(outputs), torch.cat(again))
    assert not torch.cat(outputs).requires_grad


def test_a_sweep_that_stops_runs_no_further() -> None:
    ran: list[str] = []

    class Layers(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(5, 5, dtype=torch.float64)

        def forward(self, x, propagate):  # type: ignore[no-untyped-def]
            h = self.layer(propagate(x))
            ran.append("first")
            h = propagate(h)
            ran.append("second")
            return h

    model = Layers()
    setup = set_up(model, GRAPH)
    ran.clear()
    for swept in sweep(model, setup, EVERYONE, tables(), stop=1):
        assert swept.outputs is None
        assert len(swept.received) == 2
    assert set(ran) == {"first"}
