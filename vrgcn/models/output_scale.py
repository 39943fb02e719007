"""The unit of what a model predicts, kept with its weights."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from vrgcn.files.mistakes import InputError


class OutputScale(nn.Module):
    """y * deviation + mean: from the scale that a model learns in to the labels' own unit.

    Nothing happens before `set`. What was set is part of the state dict, and comes back with it.
    In double precision, for a mean may be large beside the deviation.
    """

    mean: Tensor | None
    deviation: Tensor | None

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", None)
        self.register_buffer("deviation", None)
        self.register_load_state_dict_pre_hook(_make_room)

    def set(self, mean: float, deviation: float, device: torch.device) -> None:
        if not math.isfinite(mean) or not 0 < deviation < math.inf:
            raise InputError(f"the mean {mean} and deviation {deviation} of labels are no scale")
        self.mean = torch.tensor(mean, dtype=torch.float64, device=device)
        self.deviation = torch.tensor(deviation, dtype=torch.float64, device=device)

    def forward(self, y: Tensor) -> Tensor:
        if self.mean is None or self.deviation is None:
            return y
        return y.to(self.mean.dtype) * self.deviation + self.mean


def _make_room(scale: nn.Module, state: Mapping[str, Any], prefix: str, *_: Any) -> None:
    """A state dict with a scale is loaded into a model without one, as a new model is."""
    for name in ("mean", "deviation"):
        if prefix + name in state and getattr(scale, name) is None:
            setattr(scale, name, torch.empty_like(state[prefix + name]))
