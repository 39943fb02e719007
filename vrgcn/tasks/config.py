"""Settings of the usual losses. Imports no torch: the command line reads them before loading
anything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from vrgcn.files.mistakes import InputError
from vrgcn.files.settings import Component, declared


@dataclass(frozen=True)
class LossConfig(Component):
    """The loss."""

    """Group training."""
    loss: Literal["auto", "mse", "mae", "logistic", "bpr", "softmax"] = declared(
        "auto", compared=True
    )
    """Loss for regression: mean squared or mean absolute error; auto: absolute if the metric is
    mae, else squared. For pairs: logistic
    tells true pairs from negatives, bpr ranks a true partner above each negative, softmax above all
    of them together; auto: logistic. For classification it is the cross-entropy, which auto stands
    for too."""
    class_weights: Literal["none", "balanced"] = declared("none", of=("labels",))
    """Weights of the classes in the loss. balanced: each class counts the same, however few
    training nodes have it."""
    label_smoothing: float = declared(0.0, of=("labels",))
    """Share of each training label that is spread evenly over all classes."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.label_smoothing < 1:
            raise InputError(
                f"label_smoothing is a share from 0 to below 1, not {self.label_smoothing}"
            )
