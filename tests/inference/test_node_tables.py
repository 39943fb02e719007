"""Node tables of saved models: rows follow the user's ids."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import torch
from torch import Tensor, nn

from tests.messages import refused
from vrgcn import Graph, TrainConfig, fit, load_model, predict, save_model
from vrgcn.graph.names import Names
from vrgcn.inference.node_tables import id_tensors, ids_of_tensors
from vrgcn.models.node_table import NodeTable

EDGES = torch.tensor([[0, 1, 2, 3, 4, 0], [1, 2, 3, 4, 0, 2]])
X = torch.randn(5, 3, generator=torch.Generator().manual_seed(1))
LABELS = torch.tensor([0, 1, 0, 1, 1])
TEXTS = ["ä", "b", "", "dd", "e"]


class Rows(nn.Module):
    propagation = "mean"

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.last = nn.Linear(3, 2)
        self.table = NodeTable.drawn(5, 2, 1.0)

    def forward(self, x: Tensor, propagate: Any) -> Tensor:
        out: Tensor = self.last(propagate(x)) + propagate.table(self.table.rows)
        return out


def graph(ids: list[Any] | None, order: list[int] | None = None) -> Graph:
    """The graph with its nodes in an order; ids: of the nodes as EDGES number them"""
    order = list(range(5)) if order is None else order
    place = torch.tensor([order.index(node) for node in range(5)])
    names = None if ids is None else Names(pa.array([ids[node] for node in order]))
    return Graph(
        place[EDGES], X[order], LABELS[order], train=[0, 1, 2, 3, 4], undirected=True, names=names
    )


def trained(ids: list[Any] | None) -> Rows:
    model = Rows()
    fit(model, graph(ids), TrainConfig(estimator="exact", epochs=2))
    return model


@pytest.mark.parametrize("ids", [None, TEXTS, [30, 10, 7, -1, 2**40]])
def test_a_saved_model_predicts_the_same(tmp_path: Path, ids: list[Any] | None) -> None:
    model = trained(ids)
    save_model(model, tmp_path / "m.safetensors")
    again = load_model(tmp_path / "m.safetensors", model=Rows)
    assert torch.equal(predict(again, graph(ids)), predict(model, graph(ids)))


@pytest.mark.parametrize("ids", [TEXTS, [30, 10, 7, -1, 2**40]])
def test_rows_follow_their_nodes_into_another_order(tmp_path: Path, ids: list[Any]) -> None:
    model, order = trained(ids), [3, 1, 4, 0, 2]
    save_model(model, tmp_path / "m.safetensors")
    again = load_model(tmp_path / "m.safetensors", model=Rows)
    before = predict(model, graph(ids))
    for used in (again, model):
        after = predict(used, graph(ids, order))
        assert torch.allclose(after, before[order], atol=1e-6, rtol=0)
    assert torch.equal(predict(again, graph(ids)), before)  # itself unchanged


def test_a_new_node_has_a_row_of_zeros() -> None:
    model = trained(TEXTS)
    grown = Graph(
        torch.cat([EDGES, torch.tensor([[0], [5]])], 1),
        torch.cat([X, X[:1]]),
        undirected=True,
        names=Names(pa.array([*TEXTS, "new"])),
    )
    found = predict(model, grown)
    wider = Rows()
    wider.load_state_dict({k: v for k, v in model.state_dict().items() if "table" not in k}, False)
    wider.table.set(torch.cat([model.table.rows.detach(), torch.zeros(1, 2)]))
    assert torch.allclose(found, predict(wider, grown), atol=1e-6, rtol=0)


@pytest.mark.parametrize("ids", [[""], ["a", "", "ü\n"], [5, -5], ["x" * 1000]])
def test_ids_go_through_tensors(ids: list[Any]) -> None:
    found = ids_of_tensors("m", id_tensors(pa.array(ids)))
    assert found is not None
    assert found.to_pylist() == ids


def test_ids_that_overlap_are_refused() -> None:
    held = id_tensors(pa.array(["ab", "c"])) | {"nodes.ends": torch.tensor([3, 1])}
    with refused():
        ids_of_tensors("m", held)
