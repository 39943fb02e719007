"""Prediction sets and intervals of a calibrated model, and how often they hold the label."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.inference.calibration import ENOUGH, Calibration
from vrgcn.inference.saved import SavedModel
from vrgcn.tasks import find_task
from vrgcn.tasks.regions import Region
from vrgcn.tasks.task import Task

GROUPS = 4  # of nodes by degree


def model_region(saved: SavedModel, coverage: float) -> Region:
    """From a model's outputs to sets or intervals with a promised coverage; raise if the model
    cannot promise it."""
    return find_region(find_task(saved.task), saved.calibration, coverage)


def find_region(task: Task, calibration: Calibration | None, coverage: float) -> Region:
    """The same for a task and a model's calibration."""
    if task.several:
        raise InputError(f"{setting('coverage')}: there are no prediction sets for {task.label}")
    if calibration is None:
        raise InputError(
            f"{setting('coverage')}: the model is not calibrated. vrgcn train calibrates where a "
            f"graph has {ENOUGH} validation nodes, with {setting('calibrate', 'always')} also "
            "where it has fewer; train it again"
        )
    return calibration.region(task, coverage)


@dataclass(frozen=True)
class Covered:
    """How often regions hold the label, among some nodes.

    name: of the nodes; nodes: how many; share: of them whose region holds the label
    size: mean number of classes in a set, or mean width of an interval
    """

    name: str
    nodes: int
    share: float
    size: float

    @property
    def row(self) -> list[str]:
        """The cells of a table: name, nodes, coverage, size."""
        return [self.name, f"{self.nodes:,}", f"{self.share:.3f}", f"{self.size:.3g}"]


def coverage_of(
    task: Task, outputs: Tensor, labels: Tensor, region: Region, groups: dict[str, Tensor]
) -> list[Covered]:
    """Coverage of all nodes and of groups of them.

    outputs: calibrated, (nodes, width); groups: (nodes,) bool by name; empty ones are left out
    """
    regions = region(outputs)
    held, ends = task.covers(regions, labels).double(), regions.double()
    size = ends.sum(1) if task.has_classes else ends[:, 1] - ends[:, 0]
    everything = {"all": torch.ones(len(labels), dtype=torch.bool)} | groups
    return [
        Covered(name, int(inside.sum()), float(held[inside].mean()), float(size[inside].mean()))
        for name, inside in everything.items()
        if inside.any()
    ]


def by_degree(degrees: Tensor) -> dict[str, Tensor]:
    """Nodes in groups of about the same size, from the smallest degrees up, by name."""
    if not len(degrees):
        return {}
    shares = torch.linspace(0, 1, GROUPS + 1, dtype=torch.float64)
    edges = torch.quantile(degrees.double(), shares).round().long().tolist()
    groups: dict[str, Tensor] = {}
    low = edges[0]
    for number, high in enumerate(edges[1:], start=1):
        last = number == GROUPS
        inside = (degrees >= low) & ((degrees <= high) if last else (degrees < high))
        if inside.any():
            top = int(degrees[inside].max())
            groups[f"degree {low}" if low == top else f"degree {low} to {top}"] = inside
        low = high
    return groups
