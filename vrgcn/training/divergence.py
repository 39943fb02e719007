"""Divergence: a training loss, or weights, that are infinite or not a number."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from vrgcn.engine.batch import Position
from vrgcn.training.state import TrainState

BLOCK = 1 << 22  # numbers that are checked together


class DivergedError(FloatingPointError):
    """Raised when training diverges.

    what: the quantity that became infinite or NaN, and where training stood; advice follows it
    """

    def __init__(self, what: str, advice: str) -> None:
        super().__init__(f"{what}; {advice}")
        self.what = what


def diverged(what: str, position: Position, rate: float) -> DivergedError:
    """Return the error that says where training diverged, and what to do.

    what: such as "the training loss became nan"
    """
    return DivergedError(
        f"{what} at epoch {position.epoch}, step {position.place}",
        f"lower the learning rate (now {rate:g}) or look at the features' scale",
    )


def all_finite(state: TrainState) -> bool:
    """Return True if weights, the optimiser's moments and histories are all finite. A checkpoint is
    a state to return to, so a diverged state must not be written as one."""
    moments = [part for weight in state.optimizer["state"].values() for part in weight.values()]
    tensors = [t for t in moments if isinstance(t, Tensor)]
    return all(map(_finite, (*state.model.values(), *tensors, *state.histories.values())))


def finite_weights(model: nn.Module) -> bool:
    """Return True if the trained weights are finite. No loss is computed after the last step that
    would show it."""
    return all(map(_finite, model.parameters()))


def _finite(tensor: Tensor) -> bool:
    if not tensor.is_floating_point() or not tensor.numel():
        return True
    rows = tensor.detach().reshape(1) if tensor.dim() == 0 else tensor.detach()
    # A few rows at a time: PyTorch converts 16-bit numbers to 32 bits before it adds them up.
    return all(map(_block_finite, rows.split(max(1, BLOCK * len(rows) // rows.numel()))))


def _block_finite(block: Tensor) -> bool:
    # A sum is several times as fast as a test of each element, and finite only if all are.
    return math.isfinite(float(block.sum(dtype=torch.float32))) or bool(block.isfinite().all())
