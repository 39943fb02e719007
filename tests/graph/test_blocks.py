"""Features in blocks are the matrix that they stand for."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.messages import refused
from vrgcn import GCN, Graph, GraphSAGE, TrainConfig, fit, predict
from vrgcn.engine.estimators import ESTIMATORS
from vrgcn.graph.block import Block
from vrgcn.graph.blocks import Blocks
from vrgcn.graph.propagation import gcn
from vrgcn.graph.sparse import (
    CSR,
    concatenate,
    dense_width,
    first_rows,
    scale_rows,
    select_columns,
    select_rows,
    sparse_columns,
    stored,
)
from vrgcn.models.dense import Dropout
from vrgcn.runs.identity import fingerprint

ROWS, DENSE, SPARSE = 12, 3, 7


def _sparse(rows: int, columns: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    values = torch.rand(rows, columns, generator=generator)
    return (values * (values > 0.6)).double().to_sparse_csr()


def _dense(rows: int, columns: int, seed: int = 1) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(rows, columns, generator=generator, dtype=torch.float64)


def side_by_side() -> Blocks:
    x = Blocks.beside([_dense(ROWS, DENSE), _sparse(ROWS, SPARSE)])
    assert isinstance(x, Blocks)
    return x


def some_rows() -> Blocks:
    """Two kinds of nodes, each with columns of its own, dense and sparse."""
    blocks = [
        Block(_dense(5, 2)),
        Block(_sparse(5, 3), column=2),
        Block(_dense(6, 4, seed=2), column=5, row=5),
    ]  # nothing in the last row, nor in the last column
    return Blocks((ROWS, 10), blocks)


def mixed_rows() -> Blocks:
    """Rows of both kinds in turn, as a minibatch has them."""
    return some_rows().select_rows(torch.tensor([11, 0, 7, 1, 5, 4, 10, 3, 6, 2, 9, 8]))


CASES = [side_by_side, some_rows, mixed_rows]
NODES = torch.tensor([7, 0, 11, 4, 5, 7])


@pytest.fixture(params=CASES, ids=lambda case: case.__name__)
def x(request: pytest.FixtureRequest) -> Blocks:
    made: Blocks = request.param()
    return made


def test_rows_and_columns_are_those_of_the_matrix(x: Blocks) -> None:
    dense = x.to_dense()
    columns = torch.tensor([9, 2, 3, 4, 0, 8])
    assert torch.equal(select_rows(x, NODES).to_dense(), dense[NODES])
    assert torch.equal(
        select_rows(select_rows(x, NODES), NODES[1:4] % 6).to_dense(), dense[NODES][NODES[1:4] % 6]
    )
    for count in (0, 3, 7, ROWS):
        assert torch.equal(first_rows(x, count).to_dense(), dense[:count])
        assert torch.equal(x[:count].to_dense(), dense[:count])
    assert torch.equal(select_columns(x, columns).to_dense(), dense[:, columns])
    assert torch.equal(x[dense[:, 0] > 0].to_dense(), dense[dense[:, 0] > 0])


def test_a_matrix_looks_like_a_tensor(x: Blocks) -> None:
    assert isinstance(x, Tensor)
    assert tuple(x.shape) == (ROWS, 10)
    assert x.numel() == ROWS * 10
    assert x.dtype == torch.float64
    assert x.cpu() is x
    assert x.float().dtype == torch.float32
    assert x.to("cpu", torch.float32).to_dense().dtype == torch.float32
    for same in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), x.clone(), x.detach()):
        assert torch.equal(same.to_dense(), x.to_dense())


def test_blocks_become_one_sparse_matrix(x: Blocks) -> None:
    one = x.to_sparse_csr()
    assert one.layout == torch.sparse_csr
    assert torch.equal(one.to_dense(), x.to_dense())
    assert one.values().numel() == int(x.to_dense().count_nonzero())


def test_pyg_has_one_matrix_of_all_columns() -> None:
    pytest.importorskip("torch_geometric")
    graph = _graph(side_by_side())
    data = graph.to_pyg()
    assert torch.equal(data.x.to_dense(), graph.features.to_dense())
    assert torch.equal(Graph.from_pyg(data).features.to_dense(), graph.features.to_dense())


def test_sums_and_scales_are_those_of_the_matrix(x: Blocks) -> None:
    dense, scale = x.to_dense(), _dense(ROWS, 1)[:, 0]
    assert torch.allclose(scale_rows(scale, x).to_dense(), scale[:, None] * dense)
    assert torch.allclose(scale_rows(2.0, x).to_dense(), 2 * dense)
    assert torch.allclose((scale_rows(2.0, x) + x).to_dense(), 3 * dense)
    assert torch.allclose((scale_rows(3.0, x) - x).to_dense(), 2 * dense)
    assert torch.allclose(torch.add(x, x, alpha=-0.5).to_dense(), dense / 2)
    both = concatenate(x, scale_rows(2.0, x))
    assert torch.allclose(both.to_dense(), torch.cat([dense, 2 * dense], 1))


def test_a_sum_of_different_rows_has_the_rows_of_both() -> None:
    values, sparse = _dense(3, 2), _sparse(3, 2)
    upper = Blocks((6, 4), [Block(values), Block(sparse, column=2)])
    lower = Blocks((6, 4), [Block(values, row=2), Block(sparse, column=2, row=2)])
    total = upper + lower
    assert len(total.blocks) == 2  # type: ignore[attr-defined]
    assert torch.allclose(total.to_dense(), upper.to_dense() + lower.to_dense())


def test_products_and_their_gradients_are_those_of_the_matrix(x: Blocks) -> None:
    weight = _dense(10, 4).requires_grad_()
    out = _dense(ROWS, 4, seed=3)
    wanted = x.to_dense() @ weight
    (wanted_grad,) = torch.autograd.grad(wanted, weight, out)
    for product in (x @ weight, F.linear(x, weight.t())):
        assert torch.allclose(product, wanted)
        (grad,) = torch.autograd.grad(product, weight, out)
        assert torch.allclose(grad, wanted_grad)
    with torch.no_grad():
        assert torch.allclose(x @ weight, wanted)
    linear = nn.Linear(10, 2).double()
    assert torch.allclose(linear(x), linear(x.to_dense()))


def test_averages_over_neighbours_are_those_of_the_matrix(x: Blocks) -> None:
    matrix = CSR.from_torch(_sparse(4, ROWS, seed=5))
    assert torch.allclose((matrix @ x).to_dense(), matrix @ x.to_dense())
    dense = x.to_dense()
    P = gcn(_graph(dense))
    assert torch.allclose((P @ x).to_dense(), P @ dense)
    assert torch.allclose(P.product(x, NODES).to_dense(), P.product(dense, NODES))


def test_dropout_drops_stored_values_alone() -> None:
    x = side_by_side()
    for dropout in (Dropout(0.5), nn.Dropout(0.5)):
        torch.manual_seed(0)
        dropped = dropout(x).to_dense()
        kept = dropped != 0
        assert 0 < kept.sum() < (x.to_dense() != 0).sum()
        assert torch.allclose(dropped[kept], 2 * x.to_dense()[kept])
        assert dropout.eval()(x) is x


def test_what_is_stored_is_counted() -> None:
    x = side_by_side()
    sparse = sparse_columns(x)
    assert sparse is not None
    assert torch.equal(sparse.to_torch().to_dense(), x.to_dense()[:, DENSE:])
    assert dense_width(x) == DENSE
    assert sum(part.nbytes for part in stored(x)) == ROWS * DENSE * 8 + (
        8 * (ROWS + 1) + 16 * sparse.num_entries
    )
    kinds = some_rows()
    found = sparse_columns(kinds)
    assert found is not None
    assert torch.equal(found.to_torch().to_dense(), kinds.to_dense()[:, 2:5])
    assert dense_width(kinds) == (5 * 2 + 6 * 4) / ROWS


def test_what_blocks_cannot_do_is_refused_in_words() -> None:
    x = side_by_side()
    with refused(TypeError):
        torch.relu(x)
    with refused(TypeError):
        x[1:3]
    with refused(RuntimeError):
        x @ _dense(9, 2)


@pytest.mark.parametrize(
    "blocks",
    [
        [Block(_dense(13, 2))],
        [Block(_dense(12, 2), column=9)],
        [Block(_dense(12, 2)), Block(_sparse(12, 2), 1)],
        [Block(_dense(12, 2)), Block(_dense(12, 2).float(), 2)],
        [Block(torch.full((4, 2), torch.inf), 3, 2)],
    ],
)  # fmt: skip
def test_a_graph_refuses_blocks_that_do_not_fit(blocks: list[Block]) -> None:
    with refused((ValueError, TypeError)):
        Graph(torch.zeros(2, 0, dtype=torch.long), Blocks((ROWS, 10), blocks))


def test_a_graph_says_where_its_blocks_are() -> None:
    left = Blocks((ROWS, 4), [Block(_dense(ROWS, 2)), Block(_sparse(ROWS, 2), 2)])
    right = Blocks((ROWS, 4), [Block(_dense(ROWS, 2), 2), Block(_sparse(ROWS, 2))])
    prints = [fingerprint(_graph(x))["features"] for x in (left, right)]
    assert prints[0] != prints[1]
    assert fingerprint(_graph(left.clone()))["features"] == prints[0]
    assert "features=4 in blocks" in repr(_graph(left))


def _graph(x: Tensor) -> Graph:
    generator = torch.Generator().manual_seed(4)
    rows = x.shape[0]
    edges = torch.randint(rows, (2, 3 * rows), generator=generator)
    labels = torch.randint(2, (rows,), generator=generator)
    ids = torch.arange(rows)
    return Graph(edges, x, labels, train=ids[::2], val=ids[1::2], undirected=True)


@pytest.mark.parametrize("kind", [GCN, GraphSAGE])
@pytest.mark.parametrize("order", ["before", "after"])
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("case", [side_by_side, some_rows])
def test_training_and_prediction_are_those_of_the_dense_matrix(
    case: object, kind: type[GCN], order: str, first: bool
) -> None:
    x = case()  # type: ignore[operator]
    trained = []
    for features in (x, x.to_dense()):
        graph = _graph(features)
        torch.manual_seed(0)
        model = kind(10, 5, 2, layers=2, dropout=0.0, order=order, transform_first=first).double()
        fit(model, graph, TrainConfig(epochs=2, batch_size=4, estimator="cv", seed=1))
        trained.append(predict(model, graph))
    assert torch.allclose(*trained, atol=1e-9)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_estimator_trains_on_blocks(estimator: str) -> None:
    graph = _graph(some_rows())
    model = GraphSAGE(10, 4, 2, layers=2, dropout=0.2).double()
    result = fit(model, graph, TrainConfig(epochs=2, batch_size=4, estimator=estimator))
    assert len(result.curve) == 2
