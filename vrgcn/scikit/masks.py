"""Decides which rows are trained on, which choose the best epoch, the weight of each, and the seed
of what is drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from torch import Tensor

from vrgcn.files.mistakes import InputError
from vrgcn.graph.graph import Graph


def split_of(
    X: Any, train_mask: Any, val_mask: Any, known: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_] | None]:
    """Return the rows to train on, and those to validate on; None if not specified."""
    count = len(known)
    if isinstance(X, Graph):
        train_mask = X.train if train_mask is None and len(X.train) else train_mask
        val_mask = X.val if val_mask is None and len(X.val) else val_mask
    val = None if val_mask is None else as_mask(val_mask, count, "val_mask") & known
    train = known.copy()
    if train_mask is not None:
        train &= as_mask(train_mask, count, "train_mask")
        if val is not None and (train & val).any():
            raise InputError(
                f"train_mask and val_mask overlap in {int((train & val).sum())} rows, first: "
                f"{int(np.flatnonzero(train & val)[0])}"
            )
        return train, val
    if val is not None:
        train &= ~val
    if isinstance(X, Graph):  # a graph may name test nodes and leave all others to training
        train &= ~as_mask(X.test, count)
    return train, val


def as_mask(given: Any, count: int, name: str = "") -> NDArray[np.bool_]:
    """Return (count,) bool for a mask, or for the ids of a graph's split.

    name: of the argument, for errors
    """
    if isinstance(given, Tensor) and given.dtype == torch.int64:  # ids, as in a graph's splits
        mask = np.zeros(count, np.bool_)
        mask[given.numpy()] = True
        return mask
    mask = np.asarray(given)
    if mask.dtype != np.bool_ or mask.shape != (count,):
        raise InputError(
            f"{name} must be ({count},) of True and False, not {mask.dtype} of {mask.shape}"
        )
    return mask.copy()


def set_aside(
    train: NDArray[np.bool_], share: float, seed: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Draw a share of the rows at random; return the remaining rows to train on, and that share."""
    if not 0 <= share < 1:
        raise InputError(f"validation_fraction must be at least 0 and below 1, not {share}")
    rows = np.flatnonzero(train)
    count = min(round(share * len(rows)), len(rows) - 1) if len(rows) else 0
    aside = np.random.default_rng(seed).permutation(rows)[:count]
    val = np.zeros_like(train)
    val[aside] = True
    return train & ~val, val


def row_weights(given: Any, count: int) -> NDArray[np.float64]:
    """Return the weight (count,) of each row in the loss; 1 if not specified."""
    if given is None:
        return np.ones(count)
    weights = np.asarray(given, dtype=np.float64)
    if weights.shape != (count,):
        raise InputError(f"sample_weight must be ({count},), a number per row, not {weights.shape}")
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise InputError("sample_weight must be finite and not negative")
    if not weights.any():
        raise InputError("sample_weight is zero for all rows: at least one must count")
    return weights


def seed_of(random_state: Any) -> int:
    """Return the seed that a parameter `random_state` stands for."""
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))
