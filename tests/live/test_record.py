"""What a journal needs of a live model: a moment before a change is seen, and when rows were
computed."""

from __future__ import annotations

from pathlib import Path

import torch

from tests.messages import refused
from vrgcn import GCN, Graph, Live
from vrgcn.inference.saved import SavedModel

EDGE = {"change": "add_edges", "rows": [{"source": 0, "target": 5}]}


def _live() -> Live:
    """A path of ten nodes under two layers."""
    edges = torch.tensor([[*range(9)], [*range(1, 10)]])
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(10, 3, generator=generator)
    graph = Graph(torch.cat([edges, edges.flip(0)], 1), features, torch.arange(10) % 2)
    torch.manual_seed(0)
    return Live(SavedModel.of(GCN(3, 4, 2)), graph)


def test_what_is_recorded_is_computed_and_not_yet_seen() -> None:
    live = _live()
    before = live.predict(0).outputs.clone()
    seen = []
    live.apply(EDGE, record=lambda: seen.append(live.predict(0).outputs.clone()))
    assert torch.equal(seen[0], before)
    assert not torch.equal(live.predict(0).outputs, before)


def test_a_record_that_fails_undoes_the_change() -> None:
    live, same = _live(), _live()

    def full() -> None:
        raise OSError("the disk is full")

    with refused(OSError):
        live.apply(EDGE, record=full)
    every = [*range(10)]
    assert torch.equal(live.predict(every).outputs, same.predict(every).outputs)
    live.apply(EDGE)
    same.apply(EDGE)
    assert torch.equal(live.predict(every).outputs, same.predict(every).outputs)


def test_a_change_dates_the_rows_that_it_affects_and_no_others(tmp_path: Path) -> None:
    live = _live()
    before = [live.computed(node) for node in range(10)]
    live.add_edges((0, 1 + 1))
    after = [live.computed(node) for node in range(10)]
    changed = [node for node in range(10) if after[node] != before[node]]
    # Degrees of 0 and 2 change, so do the rows of P of 0 to 3; a second layer reaches 4.
    assert changed == [0, 1, 2, 3, 4]
    live.add_edges((0, 3))
    assert live.computed(0) > after[0]
    live.save(tmp_path / "state")
    again = Live.open(tmp_path / "state", live.saved)
    assert [again.computed(n) for n in range(10)] == [live.computed(n) for n in range(10)]
