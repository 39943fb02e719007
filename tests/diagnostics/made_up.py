"""Diagnoses of which every number is made up."""

from __future__ import annotations

from dataclasses import replace

import torch

from vrgcn import TrainConfig
from vrgcn.diagnostics.diagnosis import Diagnosis, Measured
from vrgcn.diagnostics.gradients import Gradients
from vrgcn.diagnostics.staleness import Staleness
from vrgcn.training.moments import Deviation

NOTHING = Deviation(0.0, 0.0, 0.0)


def measured(layer=(0.0, 0.0), gradient=(0.0, 0.0), floor=0.01) -> Measured:
    """(bias, std) of layer 2 and of the gradient."""
    found = Deviation(gradient[0], floor, gradient[1])
    gradients = Gradients(found, {"layers.0": found}, {"layers.0.weight": found}, 3, known=True)
    return Measured({1: Deviation(layer[0], floor, layer[1])}, NOTHING, gradients)


def unseen(found: Measured, trained: int) -> Measured:
    """The same where the exact gradient is zero."""
    return replace(found, gradients=replace(found.gradients, trained=trained, known=False))


def table(relative: float = 0.0, unwritten: float = 0.0, kind: str = "h") -> Staleness:
    age = torch.full((100,), 3)
    age[: int(100 * unwritten)] = -1
    change = torch.full((100,), relative)
    return Staleness(1, kind, age, torch.arange(100), torch.ones(100), change)


def diagnosis(used="cv", tables=None, warm_start=False, **estimators: Measured) -> Diagnosis:
    estimators = {"exact": measured(), "ns": measured((0, 0.5), (0, 0.5)), **estimators}
    config = TrainConfig(estimator=used, learning_rate=0.02, warm_start=warm_start)
    staleness = {used: [table()] if tables is None else tables}
    return Diagnosis(config, torch.arange(9), 10, 30, True, estimators, {}, staleness)
