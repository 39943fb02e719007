"""PyTorch's optimisers without its compiler."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import Tensor, nn

from vrgcn.models.optimizers import uncompiled


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
