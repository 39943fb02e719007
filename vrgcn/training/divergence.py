"""Divergence: a training loss, or weights, that are infinite or not a number."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from vrgcn.engine.batch import Position
from vrgcn.training.state import TrainState

BLOCK = 1 << 22  # numbers that are checked together
_NAMED = 5  # rows that an error names


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


def spoilt(state: TrainState) -> str | None:
    """Return the first part of a state that is infinite or NaN, with its rows, such as "table 0.q
    (rows 3, 7, ...: 20 of 60)"; None if all of it is finite. A checkpoint is a state to return to,
    so a diverged state must not be written as one.

    Tables have their names in checkpoints: the level and the kind, h of activations, g of
    gradients, p and q of pairs.
    """
    for name, tensor in _named(state):
        if not _finite(tensor):
            return f"{name}{_rows(tensor)}"
    return None


def _named(state: TrainState) -> Iterator[tuple[str, Tensor]]:
    for name, weight in state.model.items():
        yield f"weight {name}", weight
    for number, moments in state.optimizer["state"].items():
        for name, moment in moments.items():
            if isinstance(moment, Tensor):
                yield f"{name} of weight {number} in the optimizer", moment
    for name, table in state.histories.items():
        yield f"table {name.removesuffix('.values')}", table


def _rows(tensor: Tensor) -> str:
    """Name the rows of a tensor with infinite numbers or NaN."""
    if tensor.dim() == 0:
        return ""
    rows = (~tensor.isfinite()).flatten(1).any(1) if tensor.dim() > 1 else ~tensor.isfinite()
    found = rows.nonzero()[:, 0].tolist()
    more = ", ..." if len(found) > _NAMED else ""
    shown = ", ".join(map(str, found[:_NAMED]))
    return f" (rows {shown}{more}: {len(found):,} of {len(rows):,})"


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
