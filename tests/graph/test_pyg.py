"""To and from PyG's Data."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Data

from tests.messages import refused
from vrgcn.graph.graph import Graph


def mask(nodes: list[int]) -> torch.Tensor:
    chosen = torch.zeros(4, dtype=torch.bool)
    chosen[nodes] = True
    return chosen


def data(**more: object) -> Data:
    return Data(
        x=torch.randn(4, 2),
        edge_index=torch.tensor([[0, 1, 2], [1, 2, 0]]),
        y=torch.tensor([0, 1, 2, 1]),
        train_mask=mask([0, 1]),
        val_mask=mask([2]),
        test_mask=mask([3]),
        **more,
    )


def test_data_becomes_a_graph_and_comes_back():
    before = data(edge_weight=torch.tensor([1.0, 2.0, 3.0]))
    graph = Graph.from_pyg(before)
    assert graph.train.tolist() == [0, 1]
    after = graph.to_pyg()
    assert torch.equal(after.x, before.x)
    assert torch.equal(after.y, before.y)
    assert torch.equal(after.val_mask, before.val_mask)
    edges = {
        tuple(e): w for e, w in zip(after.edge_index.t().tolist(), after.edge_weight, strict=True)
    }
    assert edges == {(0, 1): 1.0, (1, 2): 2.0, (2, 0): 3.0}
    again = Graph.from_pyg(after)
    assert torch.equal(again.adjacency.values, graph.adjacency.values)
    assert torch.equal(again.adjacency.indices, graph.adjacency.indices)


def test_edge_attr_of_one_column_is_the_weight_and_of_more_is_refused():
    graph = Graph.from_pyg(data(edge_attr=torch.tensor([[5.0], [6.0], [7.0]])))
    assert sorted(graph.adjacency.values.tolist()) == [5.0, 6.0, 7.0]
    with refused():
        Graph.from_pyg(data(edge_attr=torch.ones(3, 2)))


def test_labels_as_ogb_and_ppi_have_them():
    ogb = data()
    ogb.y = torch.tensor([[0.0], [1.0], [float("nan")], [1.0]])
    ogb.val_mask = None
    assert Graph.from_pyg(ogb).labels.tolist() == [0, 1, -1, 1]
    ppi = data()
    ppi.y = torch.tensor([[0, 1], [1, 1], [0, 0], [1, 0]])
    assert Graph.from_pyg(ppi).multilabel
    regression = data()
    regression.y = torch.tensor([0.5, 1.0, 2.0, 3.0])
    with refused():
        Graph.from_pyg(regression)
    with refused():
        Graph.from_pyg(regression)


@pytest.mark.parametrize("shape", [(4,), (4, 1)])
@pytest.mark.parametrize("values", [[0.5, 1.0, 2.0, 3.0], [3, 2, 1, 0]])
def test_numbers_go_both_ways(values, shape):
    given = data()
    given.y = torch.tensor(values).reshape(shape)
    graph = Graph.from_pyg(given, task="regression")
    assert (graph.task, graph.num_classes) == ("regression", 0)
    assert graph.labels.tolist() == values
    back = graph.to_pyg()
    assert back.y.tolist() == values
    assert torch.equal(Graph.from_pyg(back, task="regression").labels, graph.labels)


def test_a_single_class_of_several_is_asked_for():
    given = data()
    given.y = torch.tensor([[0], [1], [1], [0]])
    assert Graph.from_pyg(given).task == "classes"
    graph = Graph.from_pyg(given, task="multilabel")
    assert (graph.task, graph.num_classes) == ("multilabel", 1)


def test_what_is_missing_or_of_another_kind_is_named():
    with refused():
        Graph.from_pyg(Data(edge_index=torch.tensor([[0], [1]])))
    with refused():
        Graph.from_pyg(Data(x=torch.ones(2, 2)))
    many = data()
    many.train_mask = torch.ones(4, 3, dtype=torch.bool)
    with refused():
        Graph.from_pyg(many)


@pytest.mark.parametrize(
    "dtype", [torch.bool, torch.uint8, torch.int32, torch.int64, torch.float32]
)
def test_masks_may_be_0_and_1_of_any_type(dtype):
    given = data()
    for name in ("train_mask", "val_mask", "test_mask"):
        given[name] = given[name].to(dtype)
    graph = Graph.from_pyg(given)
    assert [graph.train.tolist(), graph.val.tolist(), graph.test.tolist()] == [[0, 1], [2], [3]]
    given.val_mask = torch.zeros(4, 1, dtype=dtype)
    assert len(Graph.from_pyg(given).val) == 0


def test_a_mask_of_0_and_1_is_never_read_as_node_numbers():
    two = Data(
        x=torch.randn(2, 2),
        edge_index=torch.tensor([[0], [1]]),
        y=torch.tensor([0, 1]),
        train_mask=torch.tensor([0, 1]),
    )
    assert Graph.from_pyg(two).train.tolist() == [1]


@pytest.mark.parametrize(
    "mask",
    [
        torch.tensor([0, 2, 1, 0]),
        torch.tensor([0.0, float("nan"), 1, 0]),
        torch.tensor([0, -1, 1, 0]),
        torch.tensor([0, 3]),
        torch.tensor([True, False]),
        ["a", "b", "c", "d"],
    ],
)
def test_what_is_no_mask_is_told_by_its_name(mask):
    given = data()
    given.train_mask = mask
    with refused((ValueError, TypeError)):
        Graph.from_pyg(given)


def test_a_graph_without_labels_or_splits_goes_both_ways():
    graph = Graph([[0, 1], [1, 0]], torch.randn(2, 3))
    back = Graph.from_pyg(graph.to_pyg())
    assert back.labels is None
    assert not len(back.train)
    assert not back.weighted
