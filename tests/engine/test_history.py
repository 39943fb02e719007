"""Tables of activations: written, read, averaged, saved and put back."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.messages import refused
from tests.theory.problems import random_graph
from vrgcn.engine.history import DTYPES, Histories
from vrgcn.graph.propagation import build_propagation

NODES = torch.tensor([4, 0, 7])


def values(rows: int, width: int = 3) -> torch.Tensor:
    return torch.randn(rows, width, generator=torch.Generator().manual_seed(rows))


def test_what_was_written_is_read_and_the_rest_is_zero() -> None:
    table = Histories(10).table(1, 3)
    table.write(NODES, values(3), step=5)
    assert torch.equal(table.read(NODES.flip(0), torch.float32), values(3).flip(0))
    assert torch.equal(table.read(torch.tensor([1, 2]), torch.float32), torch.zeros(2, 3))


def test_a_later_write_wins_and_ages_are_counted_from_it() -> None:
    histories = Histories(10)
    table = histories.table(0, 3)
    table.write(NODES, values(3), step=5)
    table.write(NODES[:1], 2 * values(1), step=8)
    assert torch.equal(table.read(NODES[:1], torch.float32), 2 * values(1))
    assert sorted(table.age(9).tolist()) == [1, 4, 4]
    histories.table(2, 1).write(NODES[:2], values(2, 1), step=9)
    assert histories.mean_age(9) == pytest.approx((1 + 4 + 4 + 0 + 0) / 5)


@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [("float64", 1e-12), ("float32", 1e-6), ("float16", 2e-3), ("bfloat16", 2e-2)],
)
def test_an_average_is_rows_of_p_times_the_table(dtype: str, tolerance: float) -> None:
    P = build_propagation("mean", random_graph())
    table = Histories(60, dtype).table(0, 3)
    table.write(torch.arange(60), values(60), step=0)
    assert table.values.dtype == DTYPES[dtype]
    averages = table.average(P.rows(NODES), torch.float64)
    assert averages.dtype == torch.float64
    others = P.to_dense() - torch.diag(P.to_dense().diag())
    assert torch.allclose(averages, (others @ values(60).double())[NODES], atol=tolerance)


@pytest.mark.parametrize("mapped", [False, True])
def test_a_state_put_back_is_the_same_tables_and_no_others(mapped: bool, tmp_path: Path) -> None:
    one, other = Histories(10), Histories(10, directory=tmp_path / "tables" if mapped else None)
    one.table(1, 3).write(NODES, values(3), step=5)
    other.table(1, 3).write(torch.arange(10), values(10), step=6)
    other.table(2, 4)
    other.load_state_dict(one.state_dict())
    assert other.tables.keys() == {(1, "h")}
    for name, tensor in one.state_dict().items():
        assert torch.equal(other.state_dict()[name], tensor), name


def test_a_level_keeps_its_width() -> None:
    histories = Histories(10)
    histories.table(1, 3)
    with refused():
        histories.table(1, 4)
