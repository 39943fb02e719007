"""Row-wise functions of two levels take the rows that both have, and nothing else changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.messages import refused
from vrgcn.pyg.same_nodes import SameNodes

LONG, SHORT = torch.arange(12.0).view(6, 2), 10 * torch.arange(4.0).view(2, 2) + 1


@pytest.mark.parametrize(
    "compute",
    [
        lambda a, b: a + b,
        lambda a, b: b - a,
        lambda a, b: a * b,
        torch.maximum,
        lambda a, b: torch.cat([a, b], dim=-1),
        lambda a, b: torch.cat((b, a), 1),
        lambda a, b: torch.stack([a, b]),
        lambda a, b: torch.lerp(a, b, 0.3),
        lambda a, b: torch.where(b > 5, b, a),
    ],
)
def test_the_longer_is_cut_to_the_rows_of_the_shorter(compute: Callable[..., Any]) -> None:
    with SameNodes() as same:
        same.note([6], 2)
        found = compute(LONG, SHORT)
    assert torch.equal(found, compute(LONG[:2], SHORT))


def test_of_three_levels_all_are_cut_to_the_last() -> None:
    levels = [torch.ones(6, 1), torch.ones(4, 1), torch.ones(2, 1)]
    with SameNodes() as same:
        same.note([6], 4)
        same.note([6, 4], 2)
        assert torch.cat(levels, dim=1).shape == (2, 3)
        assert (levels[0] + levels[1]).shape == (4, 1)


def test_other_functions_and_other_lengths_are_left_alone() -> None:
    weight = torch.ones(2, 2)
    with SameNodes() as same:
        same.note([6], 2)
        assert (LONG @ weight).shape == (6, 2)  # a weight of as many rows as a level
        assert torch.cat([LONG, SHORT]).shape == (8, 2)  # below each other
        assert (LONG + torch.ones(1, 2)).shape == (6, 2)
        with refused(RuntimeError):
            LONG + torch.ones(5, 2)
    with refused(RuntimeError):
        LONG + SHORT


def test_one_row_at_hand_is_not_spread_over_many() -> None:
    with SameNodes() as same:
        same.note([6], 1)
        found: Tensor = LONG + SHORT[:1]
    assert torch.equal(found, LONG[:1] + SHORT[:1])
