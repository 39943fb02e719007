"""Settings of what is done to a trained model's outputs. Imports no torch: the command line reads
them before loading anything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from vrgcn.files.settings import Component, declared


@dataclass(frozen=True)
class SmoothingConfig(Component):
    """Whether predictions are corrected and smoothed."""

    """Group evaluation."""
    smooth: Literal["auto", "always", "never"] = declared("auto", of=("labels",), whole=True)
    """Correct and smooth the trained model's predictions by the training labels (Correct & Smooth).
    auto: if that improves the validation score, and the graph is small enough to try it in a few
    seconds; always: in the best way found on the validation nodes."""


@dataclass(frozen=True)
class CalibrationConfig(Component):
    """Whether predictions are calibrated."""

    """Group evaluation."""
    calibrate: Literal["auto", "always", "never"] = declared("auto", of=("labels",), whole=True)
    """Calibrate the trained model on the validation nodes: a temperature for its probabilities, a
    threshold for two classes (both only if held-out validation nodes gain by them), limits of
    prediction sets and intervals. auto: with at least 200 validation nodes."""
