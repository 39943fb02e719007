"""Where the largest of many scores are."""

from __future__ import annotations

import torch
from torch import Tensor


def first_places(scores: Tensor, top: int) -> Tensor:
    """The places of the largest scores (candidates,) but minus infinity, the largest first: at most
    `top`. Of equal scores the place that comes first is the better."""
    least = scores.topk(min(top, len(scores))).values[-1:]
    there = ((scores >= least) & (scores > -torch.inf)).nonzero()[:, 0]
    return there[scores[there].argsort(descending=True, stable=True)[:top]]
