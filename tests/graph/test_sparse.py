"""Compressed sparse rows against the dense matrices they stand for."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck

from vrgcn.graph.sparse import (
    CSR,
    concatenate,
    first_rows,
    for_rows,
    in_blocks,
    offsets,
    scale_rows,
    select_columns,
    select_rows,
    with_values,
)


def random_dense(rows: int, columns: int, seed: int, density: float = 0.4) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    keep = torch.rand(rows, columns, generator=generator) < density
    return torch.randn(rows, columns, dtype=torch.float64, generator=generator) * keep


def csr(dense: torch.Tensor) -> CSR:
    return CSR.from_torch(dense.to_sparse_csr())


shapes = st.tuples(st.integers(0, 6), st.integers(1, 6), st.integers(0, 1000))


@given(shapes, st.lists(st.integers(0, 100), max_size=8))
@settings(max_examples=60, deadline=None)
def test_rows_are_those_asked_for_in_that_order_repeats_included(shape, wanted):
    rows, columns, seed = shape
    dense = random_dense(rows, columns, seed)
    nodes = torch.tensor([w % rows for w in wanted] if rows else [], dtype=torch.int64)
    part = csr(dense).rows(nodes)
    assert part.num_rows == len(nodes)
    assert part.columns == columns
    assert torch.equal(part.to_torch().to_dense(), dense[nodes])


def test_entries_are_positions_in_the_whole_matrix():
    matrix = csr(torch.tensor([[1.0, 2.0], [0.0, 0.0], [0.0, 3.0]]))
    indptr, entries = matrix.entries(torch.tensor([2, 1, 0]))
    assert indptr.tolist() == [0, 1, 1, 3]
    assert entries.tolist() == [2, 0, 1]
    assert matrix.row_of_entry.tolist() == [0, 0, 2]
    assert matrix.counts.tolist() == [2, 0, 1]


@given(shapes)
@settings(max_examples=60, deadline=None)
def test_transposed_is_the_transpose(shape):
    rows, columns, seed = shape
    dense = random_dense(rows, columns, seed)
    transposed = csr(dense).transposed
    assert (transposed.num_rows, transposed.columns) == (columns, rows)
    assert torch.equal(transposed.to_torch().to_dense(), dense.T)


@given(shapes, st.integers(1, 4))
@settings(max_examples=60, deadline=None)
def test_product_is_the_dense_product_with_and_without_gradient(shape, width):
    rows, columns, seed = shape
    dense = random_dense(rows, columns, seed)
    h = random_dense(columns, width, seed + 1, density=1.0)
    torch.testing.assert_close(csr(dense) @ h, dense @ h)
    tracked = h.clone().requires_grad_()
    torch.testing.assert_close((csr(dense) @ tracked).detach(), dense @ h)


@pytest.mark.parametrize("density", [0.0, 0.3, 1.0])
def test_gradient_of_the_product_passes_gradcheck(density):
    matrix = csr(random_dense(5, 7, 3, density))
    h = random_dense(7, 3, 4, density=1.0).requires_grad_()
    assert gradcheck(lambda h: matrix @ h, h)


def test_gradient_is_the_transposed_product_even_where_columns_repeat():
    matrix = CSR(torch.tensor([0, 3, 3]), torch.tensor([1, 1, 0]), torch.tensor([1.0, 2, 4]), 2)
    h = torch.tensor([[1.0], [10.0]], requires_grad=True)
    y = matrix @ h
    assert y.tolist() == [[34.0], [0.0]]
    y.sum().backward()
    assert h.grad.tolist() == [[4.0], [3.0]]


def test_product_takes_any_memory_order():
    matrix = csr(random_dense(4, 6, 0))
    h = random_dense(3, 6, 1, density=1.0).t()
    expected = matrix.to_torch().to_dense() @ h
    torch.testing.assert_close(matrix @ h, expected)
    h = h.requires_grad_()
    y = matrix @ h
    torch.testing.assert_close(y.detach(), expected)
    y.t().sum(0, keepdim=True).sum().backward()
    torch.testing.assert_close(h.grad, matrix.to_torch().to_dense().sum(0)[:, None].expand(6, 3))


def test_no_gradient_is_kept_where_none_is_wanted():
    matrix = csr(random_dense(4, 6, 0))
    h = random_dense(6, 2, 1).requires_grad_()
    with torch.no_grad():
        assert not (matrix @ h).requires_grad
    assert (matrix @ h).requires_grad


@pytest.mark.parametrize(("rows", "columns"), [(0, 4), (3, 4)])
def test_matrix_without_entries_gives_zeros(rows, columns):
    empty = torch.empty(0, dtype=torch.int64)
    matrix = CSR(torch.zeros(rows + 1, dtype=torch.int64), empty, torch.empty(0), columns)
    assert torch.equal(matrix @ torch.ones(columns, 2), torch.zeros(rows, 2))
    h = torch.ones(columns, 2, requires_grad=True)
    (matrix @ h).sum().backward()
    assert torch.equal(h.grad, torch.zeros(columns, 2))
    assert matrix.transposed.num_rows == columns


def test_offsets_start_at_zero_and_end_at_the_total():
    assert offsets(torch.tensor([2, 0, 3])).tolist() == [0, 2, 2, 5]
    assert offsets(torch.tensor([], dtype=torch.int64)).tolist() == [0]


@given(shapes)
@settings(max_examples=40, deadline=None)
def test_product_with_a_sparse_operand_is_sparse_and_equal(shape):
    rows, columns, seed = shape
    rows = max(rows, 1)
    left, right = random_dense(rows, columns, seed), random_dense(columns, 5, seed + 1)
    product = csr(left) @ right.to_sparse_csr()
    assert product.layout == torch.sparse_csr
    torch.testing.assert_close(product.to_dense(), left @ right)


def test_product_is_in_the_dtype_of_the_operand_and_of_half_precision_in_float32():
    matrix = csr(random_dense(4, 6, 0))
    for dtype in (torch.float64, torch.float32):
        assert (matrix @ torch.ones(6, 2, dtype=dtype)).dtype == dtype
    for dtype in (torch.float16, torch.bfloat16):
        assert (matrix @ torch.ones(6, 2, dtype=dtype)).dtype == torch.float32
    assert (matrix @ torch.eye(6).to_sparse_csr()).dtype == torch.float32


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_a_scaled_row_is_its_scale_times_the_sum_of_its_entries(dtype, weighted):
    generator = torch.Generator().manual_seed(0)
    indptr, indices = torch.tensor([0, 3, 3, 7]), torch.tensor([0, 2, 5, 1, 2, 3, 4])
    values = torch.rand(7, generator=generator) if weighted else None
    scale = torch.tensor([0.5, 2.0, -1.0])
    matrix = CSR(indptr, indices, values, 6, scale)
    dense = matrix.to_torch(torch.float64).to_dense()
    entries = torch.ones(7) if values is None else values
    wanted = torch.zeros(3, 6).index_put_((matrix.row_of_entry, indices), entries) * scale[:, None]
    torch.testing.assert_close(dense, wanted.double())
    x = torch.randn(6, 4, generator=generator).to(dtype)
    tolerance = torch.finfo(dtype).eps * 4
    found = (matrix @ x).double()
    torch.testing.assert_close(found, dense @ x.double(), rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(matrix.transpose().to_torch(torch.float64).to_dense(), dense.T)
    rows = torch.tensor([2, 0, 2])
    torch.testing.assert_close(matrix.rows(rows).to_torch(torch.float64).to_dense(), dense[rows])


def test_the_average_of_a_hub_is_right_in_half_precision_where_its_sum_is_not():
    neighbours = 2000
    values = torch.full((neighbours, 3), 100.0, dtype=torch.float16)  # their sum is 200,000
    indptr, indices = torch.tensor([0, neighbours, neighbours + 1]), torch.arange(neighbours + 1)
    indices[-1] = 0
    hub = CSR(indptr, indices, None, neighbours, torch.tensor([1 / neighbours, 1.0]))
    torch.testing.assert_close(hub @ values, torch.full((2, 3), 100.0), rtol=2e-3, atol=0)


@pytest.mark.parametrize("size", [1e-9, 1e-6, 1.0, 1e6])
def test_weights_of_any_size_are_averaged_in_half_precision(size):
    """A mean does not change where all weights do alike."""
    generator = torch.Generator().manual_seed(0)
    dense = torch.rand(20, 30, generator=generator) * (
        torch.rand(20, 30, generator=generator) < 0.3
    )
    x = torch.randn(30, 4, generator=generator).half()
    weights = CSR.from_torch((dense * size).to_sparse_csr())
    mean = CSR(
        weights.indptr, weights.indices, weights.values, 30, 1 / (dense.sum(1) * size).clamp(1e-30)
    )
    expected = (dense / dense.sum(1, keepdim=True).clamp(1e-30)) @ x.float()
    torch.testing.assert_close(mean @ x, expected, rtol=2e-3, atol=2e-3)


def test_the_sum_of_a_hub_may_lie_beyond_half_precision():
    x = torch.full((1000, 2), 100.0, dtype=torch.float16)
    hub = CSR(torch.tensor([0, 1000]), torch.arange(1000), None, 1000)
    torch.testing.assert_close(hub @ x, torch.full((1, 2), 100_000.0), rtol=2e-3, atol=0)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float16, 2**-10), (torch.bfloat16, 2**-7)])
def test_half_precision_tables_are_averaged_to_their_precision(dtype, tolerance):
    generator = torch.Generator().manual_seed(0)
    table = torch.rand(500, 16, generator=generator)
    matrix = csr(torch.full((3, 500), 1 / 500))  # a mean over 500 rows, each close to 0.5
    exact = table.mean(0)
    assert ((matrix @ table.to(dtype)).float() - exact).abs().max() < 2 * tolerance * exact.max()


@pytest.mark.parametrize("layout", ["dense", "sparse"])
class TestEitherLayout:
    x = random_dense(6, 4, 11)

    def given(self, layout):
        return self.x if layout == "dense" else self.x.to_sparse_csr()

    def check(self, result, expected, layout):
        assert result.layout == (torch.strided if layout == "dense" else torch.sparse_csr)
        assert torch.equal(result.to_dense(), expected)

    @pytest.mark.parametrize("count", [0, 1, 4, 6])
    def test_first_rows(self, layout, count):
        self.check(first_rows(self.given(layout), count), self.x[:count], layout)

    @pytest.mark.parametrize("nodes", [[5, 0, 3], [2, 2], []])
    def test_select_rows(self, layout, nodes):
        nodes = torch.tensor(nodes, dtype=torch.int64)
        self.check(select_rows(self.given(layout), nodes), self.x[nodes], layout)

    def test_scale_rows_in_the_dtype_of_the_rows(self, layout):
        scale = torch.tensor([0.0, 1.0, -2.0, 0.5, 3.0, 4.0])  # float32
        result = scale_rows(scale, self.given(layout))
        assert result.dtype == torch.float64
        self.check(result, scale.double()[:, None] * self.x, layout)

    def test_concatenate(self, layout):
        right = random_dense(6, 3, 12)
        other = right if layout == "dense" else right.to_sparse_csr()
        result = concatenate(self.given(layout), other)
        assert in_blocks(result) is (layout == "sparse")
        assert torch.equal(result.to_dense(), torch.cat([self.x, right], dim=1))

    @pytest.mark.parametrize("nodes", [[5, 0, 3], [2, 2], []])
    def test_rows_are_the_same_of_a_matrix_that_is_made_for_reading_them(self, layout, nodes):
        nodes = torch.tensor(nodes, dtype=torch.int64)
        table = for_rows(self.given(layout))
        assert layout == "dense" or table.col_indices().dtype == torch.int32
        self.check(select_rows(table, nodes), self.x[nodes], layout)


def test_dense_first_rows_and_scale_rows_carry_gradients():
    x = torch.ones(3, 2, requires_grad=True)
    scale_rows(torch.tensor([2.0, 3.0]), first_rows(x, 2)).sum().backward()
    assert x.grad.tolist() == [[2, 2], [3, 3], [0, 0]]


def test_with_values_keeps_the_places():
    x = torch.tensor([[0.0, 5.0], [6.0, 0.0]]).to_sparse_csr()
    assert with_values(x, torch.tensor([1.0, 2.0])).to_dense().tolist() == [[0, 1], [2, 0]]


def test_columns_are_chosen_alike_in_both_layouts():
    x = torch.randn(5, 6) * (torch.rand(5, 6) < 0.5)
    columns = torch.tensor([4, 0, 3])
    chosen = select_columns(x.to_sparse_csr(), columns)
    assert chosen.layout == torch.sparse_csr
    assert torch.equal(chosen.to_dense(), x[:, columns])
    assert torch.equal(select_columns(x, columns), x[:, columns])


@pytest.mark.parametrize("counts", [[1, 1, 1], [1, 0, 2], [3, 0, 0], [0, 0, 1]])
def test_product_with_few_entries_and_its_gradient(counts):
    indices = torch.tensor([4, 1, 4])[: sum(counts)]
    values = torch.tensor([2.0, -1.0, 0.5], dtype=torch.float64)[: sum(counts)]
    matrix = CSR(offsets(torch.tensor(counts)), indices, values, 6)
    h = random_dense(6, 3, seed=1, density=1.0).requires_grad_()
    other = h.detach().clone().requires_grad_()
    product = matrix @ h
    torch.testing.assert_close(product, matrix.to_torch().to_dense() @ other)
    weights = torch.arange(9, dtype=torch.float64).view(3, 3)
    (product * weights).sum().backward()
    (matrix.to_torch().to_dense() @ other * weights).sum().backward()
    torch.testing.assert_close(h.grad, other.grad)


@pytest.mark.parametrize("weighted", [True, False])
def test_rows_above_others_are_both_in_that_order(weighted):
    dense = torch.rand(7, 5) * (torch.rand(7, 5) < 0.6)
    matrix = CSR.from_torch(dense.to_sparse_csr())
    values = matrix.values if weighted else None
    matrix = CSR(matrix.indptr, matrix.indices, values, 5, torch.rand(7))
    upper, lower = torch.tensor([4, 0, 2]), torch.tensor([6, 1])
    both = matrix.rows(upper).above(matrix.rows(lower))
    torch.testing.assert_close(
        both.to_torch().to_dense(), matrix.rows(torch.cat([upper, lower])).to_torch().to_dense()
    )


@pytest.mark.parametrize("weighted", [True, False])
def test_matrices_on_a_diagonal_and_side_by_side(weighted):
    def made(rows, columns, seed):
        dense = random_dense(rows, columns, seed)
        matrix = CSR.from_torch((dense if weighted else (dense != 0).double()).to_sparse_csr())
        return CSR(matrix.indptr, matrix.indices, matrix.values if weighted else None, columns)

    def dense(matrix):
        return matrix.to_torch(torch.float64).to_dense()

    upper, lower, right = made(4, 5, 1), made(6, 3, 2), made(4, 2, 3)
    block = upper.diagonal_with(lower)
    assert torch.equal(dense(block), torch.block_diag(dense(upper), dense(lower)))
    assert (block.values is None) != weighted
    both = upper.beside(right)
    assert torch.equal(dense(both), torch.cat([dense(upper), dense(right)], dim=1))
    assert (both.values is None) != weighted
    ascending = both.indices.diff()[both.row_of_entry.diff() == 0] > 0
    assert ascending.all()


@pytest.mark.parametrize("columns", [32767, 32768, 70_000])
def test_columns_of_any_number_are_transposed_in_order(columns):
    indices = torch.tensor([columns - 1, 0, 32_766, columns - 1, 0])
    matrix = CSR(torch.tensor([0, 2, 3, 5]), indices, torch.arange(5.0), columns)
    turned = matrix.transpose()
    assert (turned.num_rows, turned.columns) == (columns, 3)
    again = turned.transpose()
    assert torch.equal(again.indptr, matrix.indptr)
    assert again.to_torch().to_dense().equal(matrix.to_torch().to_dense())
    assert turned.indices[:2].tolist() == [0, 2]  # the rows of column 0, ascending


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_split_into_runs_of_rows(size):
    matrix = torch.tensor([[0.0, 1, 2], [0, 0, 0], [3, 0, 0], [4, 5, 6], [0, 0, 0]])
    parts = CSR.from_torch(matrix.to_sparse_csr()).split(size)
    wanted = matrix.split(size)
    assert len(parts) == len(wanted)
    for part, rows in zip(parts, wanted, strict=True):
        assert part.indptr[0] == 0
        assert torch.equal(part.to_torch().to_dense(), rows)


@pytest.mark.parametrize("dtype", [None, torch.float64, torch.float16, torch.bfloat16])
def test_entries_of_a_column_keep_their_order_in_the_transpose(dtype):
    indices = torch.tensor([3, 0, 3, 3, 1, 0])  # not ascending, and 3 twice in a row
    values = None if dtype is None else torch.arange(6).to(dtype)
    matrix = CSR(torch.tensor([0, 3, 3, 6]), indices, values, 5)
    transposed = matrix.transpose()
    assert transposed.indptr.tolist() == [0, 2, 3, 3, 6, 6]
    assert transposed.indices.tolist() == [0, 2, 2, 0, 0, 2]
    if dtype is None:
        assert transposed.values is None
    else:
        assert transposed.values.dtype == dtype
        assert transposed.values.tolist() == [1, 5, 4, 0, 2, 3]
