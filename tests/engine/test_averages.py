"""Rows of P X: right, computed once, and as sparse as the features."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from tests.theory.problems import dense_matrix, random_graph
from vrgcn.engine.averages import AveragedFeatures
from vrgcn.graph.propagation import Propagation, build_propagation

GRAPH = random_graph()
P = build_propagation("gcn", GRAPH)
PX = dense_matrix(GRAPH, "gcn") @ GRAPH.features
NODES = torch.tensor([17, 3, 59, 3])


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The nodes whose rows were computed, in the order of the work."""
    nodes: list[int] = []
    product = Propagation.product

    def counted(self: Propagation, h: Tensor, chosen: Tensor) -> Tensor:
        nodes.extend(chosen.tolist())
        return product(self, h, chosen)

    monkeypatch.setattr(Propagation, "product", counted)
    return nodes


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("sparse", [True, False])
def test_rows_are_those_of_the_product_in_the_order_asked(keep: bool, sparse: bool) -> None:
    features = GRAPH.features.to_sparse_csr() if sparse else GRAPH.features
    rows = AveragedFeatures(P, features).rows(NODES, keep=keep)
    assert torch.allclose(rows.to_dense() if sparse else rows, PX[NODES], atol=1e-12)


def test_rows_that_are_kept_are_computed_once(computed: list[int]) -> None:
    averages = AveragedFeatures(P, GRAPH.features)
    averages.rows(torch.tensor([5, 9]), keep=True)
    averages.rows(torch.tensor([9, 11]), keep=True)
    averages.fill(torch.tensor([11, 12]))
    averages.rows(torch.tensor([12, 5]), keep=False)
    assert computed == [5, 9, 11, 12]


def test_rows_that_are_not_kept_are_computed_again(computed: list[int]) -> None:
    averages = AveragedFeatures(P, GRAPH.features)
    for _ in range(2):
        averages.rows(torch.tensor([5]), keep=False)
    assert computed == [5, 5]
    assert averages.values is None


def test_a_part_that_is_filled_leaves_the_rest_at_zero() -> None:
    averages = AveragedFeatures(P, GRAPH.features)
    averages.fill(torch.tensor([2, 40]))
    expected = torch.zeros_like(PX)
    expected[[2, 40]] = PX[[2, 40]]
    assert torch.allclose(averages.table, expected, atol=1e-12)


def test_averages_of_sparse_features_are_sparse_where_less_than_a_third_is_not_zero() -> None:
    features = torch.zeros(GRAPH.num_nodes, 400, dtype=torch.float64)
    features[torch.arange(GRAPH.num_nodes), torch.arange(GRAPH.num_nodes) * 6] = 1.0
    averages = AveragedFeatures(P, features.to_sparse_csr())
    averages.fill()
    assert averages.table.layout == torch.sparse_csr
    nodes = torch.tensor([7, 2, 2])
    rows = averages.rows(nodes, keep=True)
    assert rows.layout == torch.sparse_csr
    assert torch.allclose(rows.to_dense(), P.product(features, nodes), atol=1e-12)


def test_averages_of_sparse_features_are_dense_where_more_than_a_third_is_not_zero() -> None:
    averages = AveragedFeatures(P, GRAPH.features.to_sparse_csr())
    assert averages.rows(torch.tensor([3]), keep=False).layout == torch.strided
    averages.fill()
    assert averages.table.layout == torch.strided
    assert torch.allclose(averages.table, PX, atol=1e-12)


def test_a_file_holds_the_table(tmp_path: Any) -> None:
    file = tmp_path / "averages" / "0.bin"
    AveragedFeatures(P, GRAPH.features, file).fill()
    held = torch.from_file(str(file), size=PX.numel(), dtype=PX.dtype).view(PX.shape)
    assert torch.allclose(held, PX, atol=1e-12)
