"""PyTorch's optimisers without its compiler."""

from __future__ import annotations

import copy
from functools import partial

import pytest
import torch
from torch import Tensor, nn

from vrgcn.models.optimizers import RowAdam, uncompiled


def _trained(kind: type[torch.optim.Optimizer], **settings: object) -> list[Tensor]:
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 3)), torch.randn(8, 5)
    optimizer = kind(model.parameters(), lr=0.1, **settings)

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        return loss

    for _ in range(3):
        optimizer.step(closure)
    restored = kind(model.parameters(), lr=0.3, **settings)
    restored.load_state_dict(optimizer.state_dict())
    restored.step(closure)
    return [*model.state_dict().values(), torch.tensor(restored.param_groups[0]["lr"])]


@pytest.mark.parametrize(
    "kind",
    [
        partial(torch.optim.Adam, fused=True, weight_decay=0.1),
        partial(torch.optim.AdamW, weight_decay=0.1),
        torch.optim.SGD,
        torch.optim.LBFGS,
    ],
)
def test_steps_and_states_are_those_of_pytorch_bit_by_bit(kind) -> None:
    plain, settings = getattr(kind, "func", kind), getattr(kind, "keywords", {})
    ours, theirs = _trained(uncompiled(plain), **settings), _trained(plain, **settings)
    assert all(map(torch.equal, ours, theirs))


def sparse(nodes: list[int], values: Tensor, shape: torch.Size) -> Tensor:
    indices = torch.tensor([nodes])
    return torch.sparse_coo_tensor(indices, values, shape, is_coalesced=True, check_invariants=True)


def steps() -> list[tuple[list[int], Tensor]]:
    generator = torch.Generator().manual_seed(0)
    chosen = [[0, 2], [2, 3, 4], [0], [1, 2, 4]]
    return [(nodes, torch.randn(len(nodes), 3, generator=generator)) for nodes in chosen]


def test_rows_move_as_by_sparse_adam() -> None:
    ours, theirs = nn.Parameter(torch.ones(6, 3)), nn.Parameter(torch.ones(6, 3))
    a, b = RowAdam([ours], lr=0.1), torch.optim.SparseAdam([theirs], lr=0.1)
    for nodes, values in steps():
        for parameter, optimizer in ((ours, a), (theirs, b)):
            parameter.grad = sparse(nodes, values, parameter.shape)
            optimizer.step()
    assert torch.allclose(ours, theirs, atol=1e-6, rtol=0)
    assert torch.equal(ours[5], torch.ones(3))  # no step read it


def test_a_row_that_a_step_does_not_read_stays_to_the_bit() -> None:
    table = nn.Parameter(torch.randn(6, 3))
    optimizer = RowAdam([table], lr=0.1)
    for nodes, values in steps():
        before = table.detach().clone()
        table.grad = sparse(nodes, values, table.shape)
        optimizer.step()
        rest = [node for node in range(6) if node not in nodes]
        assert torch.equal(table.detach()[rest], before[rest])
        assert not torch.equal(table.detach()[nodes], before[nodes])


def test_dense_gradients_move_as_by_adam() -> None:
    ours, theirs = nn.Parameter(torch.ones(4)), nn.Parameter(torch.ones(4))
    a, b = RowAdam([ours], lr=0.1, fused=True), torch.optim.Adam([theirs], lr=0.1, fused=True)
    for _ in range(3):
        for parameter, optimizer in ((ours, a), (theirs, b)):
            parameter.grad = torch.arange(4.0)
            optimizer.step()
    assert torch.equal(ours, theirs)


def test_its_state_continues_to_the_same_bits() -> None:
    table = nn.Parameter(torch.ones(6, 3))
    optimizer = RowAdam([table], lr=0.1)
    first, *rest = steps()
    table.grad = sparse(*first, table.shape)
    optimizer.step()
    other = nn.Parameter(table.detach().clone())
    again = RowAdam([other], lr=0.1)
    again.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    for nodes, values in rest:
        for parameter, chosen in ((table, optimizer), (other, again)):
            parameter.grad = sparse(nodes, values.clone(), parameter.shape)
            chosen.step()
    assert torch.equal(table, other)
