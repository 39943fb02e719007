"""Feature scaling."""

from __future__ import annotations

from pathlib import Path

import torch

from tests.messages import refused
from vrgcn.graph import scaling
from vrgcn.graph.block import Block
from vrgcn.graph.blocks import Blocks
from vrgcn.graph.graph import Graph
from vrgcn.graph.scaling import Scaling, scale_graph, suitable_scaling


def test_standard_gives_training_nodes_mean_zero_and_deviation_one(monkeypatch):
    monkeypatch.setattr(scaling, "_ROWS", 7)
    x = torch.randn(50, 3) * torch.tensor([1.0, 100.0, 1e-3]) + torch.tensor([0.0, 1e4, 5.0])
    nodes = torch.arange(0, 50, 2)
    scaled = Scaling.fit("standard", x, nodes).apply(x)
    expected = (x.double() - x[nodes].double().mean(0)) / x[nodes].double().std(0, correction=0)
    assert torch.allclose(scaled.double(), expected, rtol=1e-2, atol=2e-3)


def test_a_constant_column_becomes_zero_and_not_nan():
    x = torch.cat([torch.full((4, 1), 0.1), torch.randn(4, 1)], dim=1)
    scaled = Scaling.fit("standard", x, torch.arange(4)).apply(x)
    assert torch.equal(scaled[:, 0], torch.zeros(4))


def test_row_makes_rows_sum_to_one_dense_and_sparse_alike():
    x = torch.tensor([[1.0, 3.0, 0.0], [0.0, 0.0, 0.0], [-1.0, 1.0, 2.0]])
    expected = torch.tensor([[0.25, 0.75, 0.0], [0.0, 0.0, 0.0], [-0.25, 0.25, 0.5]])
    rows = Scaling.fit("row", x, torch.arange(3))
    assert torch.equal(rows.apply(x), expected)
    assert torch.equal(rows.apply(x.to_sparse_csr()).to_dense(), expected)


def test_none_is_the_features_themselves():
    x = torch.randn(3, 2)
    assert Scaling.fit("none", x, torch.arange(3)).apply(x) is x


def test_scaled_features_can_live_in_a_file(tmp_path: Path):
    x = torch.randn(10, 3)
    fitted = Scaling.fit("standard", x, torch.arange(10))
    assert torch.equal(fitted.apply(x, tmp_path / "scaled.bin"), fitted.apply(x))
    assert (tmp_path / "scaled.bin").stat().st_size == 120


def test_bad_scalings_are_refused():
    x = torch.randn(3, 2)
    with refused():
        Scaling.fit("odd", x, torch.arange(3))
    with refused():
        Scaling.fit("standard", x.to_sparse_csr(), torch.arange(3))
    with refused():
        Scaling.fit("standard", x, torch.empty(0, dtype=torch.int64))
    with refused():
        Scaling.fit("standard", x, torch.arange(3)).apply(torch.randn(3, 5))


def test_a_graph_says_how_it_was_scaled_and_is_not_scaled_twice():
    graph = Graph([[0, 1], [1, 0]], torch.tensor([[1.0, 2.0], [3.0, 6.0]]), [0, 1], train=[0, 1])
    assert graph.scaling is None
    scaled, scaling = scale_graph(graph, "standard")
    assert scaled.scaling is scaling
    assert scaled.among(graph.train).scaling is scaling
    assert scaled.with_features(graph.features).scaling is None
    assert scale_graph(graph, "none")[0].scaling is None
    with refused():
        scale_graph(scaled, "row")


def test_scalings_are_the_same_that_do_the_same():
    x = torch.randn(5, 3)
    fitted = Scaling.fit("standard", x, torch.arange(5))
    assert fitted.same(Scaling.fit("standard", x.clone(), torch.arange(5)))
    assert not fitted.same(Scaling.fit("standard", x, torch.arange(4)))
    assert not fitted.same(Scaling("row"))
    assert Scaling("row").same(Scaling("row"))


def test_each_block_has_the_scaling_that_suits_it():
    dense, tags = torch.randn(6, 2), torch.tensor([[1.0, 3, 0], [0, 0, 0]]).repeat(3, 1)
    x = Blocks.beside([dense, tags.to_sparse_csr()])
    graph = Graph([[0], [1]], x, [0, 1] * 3, train=[0, 1, 2], val=[3, 4, 5])
    assert suitable_scaling(graph.features) == "blocks"
    scaled, scaling = scale_graph(graph, "blocks")
    standard = Scaling.fit("standard", dense, graph.train).apply(dense)
    rows = torch.tensor([[0.25, 0.75, 0], [0, 0, 0]]).repeat(3, 1)
    assert torch.equal(scaled.features.to_dense(), torch.cat([standard, rows], 1))
    assert [block.sparse for block in scaled.features.blocks] == [False, True]
    # The model knows which columns are which, whatever layout another graph has them in.
    for other in (x.to_dense(), x.to_dense().to_sparse_csr(), Blocks.beside([dense, tags])):
        assert torch.allclose(scaling.apply(other).to_dense(), scaled.features.to_dense())


def test_blocks_can_be_scaled_like_one_matrix():
    x = Blocks.beside([torch.tensor([[1.0], [2.0]]), torch.tensor([[3.0], [0.0]]).to_sparse_csr()])
    row = Scaling.fit("row", x, torch.arange(2)).apply(x)
    assert torch.equal(row.to_dense(), torch.tensor([[0.25, 0.75], [1.0, 0.0]]))
    with refused():
        Scaling.fit("standard", x, torch.arange(2))


def test_no_statistic_of_a_block_comes_from_validation_or_test_nodes():
    generator = torch.Generator().manual_seed(0)
    one, two = torch.randn(6, 2, generator=generator), torch.randn(4, 3, generator=generator)
    labels = [0, 1] * 5

    def fitted(one, two):
        x = Blocks((10, 5), [Block(one), Block(two, column=2, row=6)])
        graph = Graph([[0], [1]], x, labels, train=[0, 1, 2], val=[3, 4, 9], test=[5])
        return scale_graph(graph, "blocks")[1]

    before = fitted(one, two)
    hidden_one, hidden_two = one.clone(), two.clone()
    hidden_one[3:] = 1e6  # nodes 3 to 5
    hidden_two[3] = 1e6  # node 9
    after = fitted(hidden_one, hidden_two)
    assert torch.equal(before.mean, after.mean)
    assert torch.equal(before.deviation, after.deviation)
    # Rows without training nodes are scaled by those that belong to no split.
    assert torch.allclose(before.mean[2:], two[:3].mean(0))


def test_clipped_numbers_are_within_two_deviations_and_sparse_columns_are_as_in_blocks() -> None:
    """A number that was rare in training and is common later cannot outweigh the others."""
    tags, far = torch.tensor([[1.0, 3, 0], [0, 9, 0]]), torch.tensor([[90.0, -90.0]])
    graph = Graph.from_kinds(
        {
            "a": torch.cat([torch.randn(40, 2), far]),
            "b": tags.to_sparse_csr(),
        },
        {("a", "of", "b"): [[0], [0]]},
        {"a": torch.tensor([0, 1] * 20 + [1])},
        train=range(30),
        test=[40],
    )
    clipped, kept = scale_graph(graph, "clipped")
    blocks, _ = scale_graph(graph, "blocks")
    assert clipped.features.to_dense()[40, :2].tolist() == [2, -2]
    assert float(blocks.features.to_dense()[40, 0]) > 30
    wanted = blocks.features.to_dense().clone()
    wanted[:41, :2] = wanted[:41, :2].clamp(-2, 2)
    assert torch.equal(clipped.features.to_dense(), wanted)
    assert kept.groups is not None
    assert suitable_scaling(graph.features, dated=True) == "clipped"
