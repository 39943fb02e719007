"""The way back through one hop, by its formula, entry by entry."""

from __future__ import annotations

import pytest
import torch

from vrgcn.engine.history import Histories
from vrgcn.engine.plan import Back, Hop
from vrgcn.engine.way_back import WayBack
from vrgcn.graph.sparse import CSR

NODES, WIDTH = 7, 3
B = torch.tensor([4, 1])  # the minibatch
SOURCES = [4, 1, 6, 2]  # B first, then what it samples
R = torch.tensor([3.0, 2.0, 5.0], dtype=torch.float64)
TARGETS = [4, 1, 6]  # targets of a lower hop: a neighbour is computed too


def matrix() -> torch.Tensor:
    torch.manual_seed(0)
    return torch.rand(NODES, NODES, dtype=torch.float64).fill_diagonal_(0)


def csr(dense: torch.Tensor) -> CSR:
    return CSR.from_torch(dense.to_sparse_csr())


def way_back(
    left: torch.Tensor | None, *, corrected: bool = True, idle: int | None = None
) -> tuple[WayBack, torch.Tensor]:
    """Return the way back of P = diag(left) A with four of 12 entries sampled, and the sampled
    part, dense.

    idle: a target that samples nothing
    """
    A = matrix()
    P = A if left is None else left[:, None] * A
    picked = torch.zeros(3, 4, dtype=torch.bool)
    picked[0, 1] = picked[0, 2] = picked[1, 3] = picked[2, 0] = True  # (4, 1) is within B
    if idle is not None:
        picked[idle] = False
    sampled = torch.where(picked, P[TARGETS][:, SOURCES], 0)
    hop = Hop(0.0, csr(sampled), R, None)
    back = Back(csr(A.T[B]), None if left is None else left[B])
    table = Histories(NODES, "float64").table(0, WIDTH, "g")
    table.values.copy_(torch.rand(NODES, WIDTH, dtype=torch.float64))
    return WayBack(hop, back, B, table, corrected=corrected, step=1), sampled


@pytest.mark.parametrize("idle", [None, 0, 1])
@pytest.mark.parametrize("corrected", [True, False])
@pytest.mark.parametrize("scaled", [True, False])
def test_gradients_come_back_by_the_formula(
    scaled: bool, corrected: bool, idle: int | None
) -> None:
    left = torch.rand(NODES, dtype=torch.float64) + 0.5 if scaled else None
    way, sampled = way_back(left, corrected=corrected, idle=idle)
    kept = way.table.values.clone()  # left g, of each node and not of the minibatch's mean
    g = torch.rand(3, WIDTH, dtype=torch.float64)
    factor = torch.ones(NODES, dtype=torch.float64) if left is None else left
    now = kept.clone()
    now[B] = factor[B, None] * g[:2] * len(B)
    wanted = torch.zeros(4, WIDTH, dtype=torch.float64)
    wanted[:2] = matrix().T[B] @ now / len(B)
    for t in range(3):
        for s in range(4):
            if not corrected or (t < 2 and s < 2):  # both in B: they are in the table as they are
                continue
            before = kept[B[t]] / factor[B[t]] / len(B) if t < 2 else 0
            wanted[s] += R[t] * sampled[t, s] * (g[t] - before)
    h = torch.zeros(4, WIDTH, dtype=torch.float64, requires_grad=True)
    answer = torch.zeros(3, WIDTH, dtype=torch.float64)
    way.attach(answer, h).backward(g)
    assert h.grad is not None
    torch.testing.assert_close(h.grad, wanted)
    torch.testing.assert_close(way.table.values, now)
    assert way.table.written[B].tolist() == [1, 1]


def test_the_gradient_of_the_mean_takes_back_what_the_residual_sampled() -> None:
    """The residual is √R P̂ (h - μ): h gets √R P̂ᵀ δ and the history, μ gets -√R P̂ᵀ δ alone."""
    way, sampled = way_back(None)
    kept = way.table.values.clone()
    g = torch.rand(3, WIDTH, dtype=torch.float64)
    delta = torch.cat([g[:2] - kept[B] / len(B), g[2:]])
    weights = R.sqrt()[:, None] * sampled
    weights[:2, :2] = 0  # both in B: they are in the table as they are
    now = kept.clone()
    now[B] = g[:2] * len(B)
    history = torch.zeros(4, WIDTH, dtype=torch.float64)
    history[:2] = matrix().T[B] @ now / len(B)
    h, mean = (torch.zeros(4, WIDTH, dtype=torch.float64, requires_grad=True) for _ in range(2))
    way.attach(torch.zeros(3, WIDTH, dtype=torch.float64), h, mean).backward(g)
    assert h.grad is not None
    assert mean.grad is not None
    torch.testing.assert_close(mean.grad, -weights.T @ delta)
    torch.testing.assert_close(h.grad, weights.T @ delta + history)


def test_the_answer_and_its_own_gradient_pass_unchanged() -> None:
    way, _ = way_back(None)
    answer = torch.rand(3, WIDTH, dtype=torch.float64, requires_grad=True)
    h = torch.zeros(4, WIDTH, dtype=torch.float64, requires_grad=True)
    attached = way.attach(answer, h)
    torch.testing.assert_close(attached, answer)
    attached.sum().backward()
    torch.testing.assert_close(answer.grad, torch.ones_like(answer))


def test_what_was_replaced_can_be_put_back() -> None:
    way, _ = way_back(None)
    kept = way.table.values.clone()
    h = torch.zeros(4, WIDTH, dtype=torch.float64, requires_grad=True)
    way.attach(torch.zeros(3, WIDTH, dtype=torch.float64), h).sum().backward()
    assert way.replaced is not None
    assert not torch.equal(way.table.values, kept)
    way.table.put_back(way.replaced)
    assert torch.equal(way.table.values, kept)
