"""Calibration at the end of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from vrgcn.files.setting_names import setting
from vrgcn.graph.graph import Graph
from vrgcn.inference.calibration import ENOUGH, calibrate
from vrgcn.inference.predict import predict
from vrgcn.inference.saved import SavedModel
from vrgcn.tasks import find_task


def calibrate_run(
    saved: SavedModel, graph: Graph, wanted: str, note: Callable[[str], None]
) -> SavedModel:
    """Return the saved model of a run, calibrated on validation nodes if `wanted` says so.

    graph: features scaled; wanted: as `Settings.calibrate`
    note: called if there are too few validation nodes
    """
    if wanted == "never" or not len(graph.val) or graph.labels is None or graph.pairs is not None:
        return saved
    if wanted == "auto" and len(graph.val) < ENOUGH:
        return saved
    outputs = predict(replace(saved, calibration=None), graph, kind="all")
    task = find_task(saved.task)
    found = calibrate(task, outputs, graph.labels, graph.val)
    if task.has_classes:
        note(
            f"probabilities are calibrated on validation nodes: temperature {found.temperature:.3g}"
        )
    return replace(saved, calibration=found)


def check_calibrate(wanted: str, graph: Graph) -> None:
    """Raise before the training if it could not be calibrated after it as the settings say."""
    if wanted != "always":
        return
    if graph.pairs is not None:
        raise ValueError(
            f"{setting('calibrate', 'always')} is for labels of nodes, and pairs are predicted: "
            "leave the setting out"
        )
    if len(graph.val) < 2:
        raise ValueError(
            f"{setting('calibrate', 'always')} calibrates on the validation nodes, and the graph "
            f"has {len(graph.val)}: give it a val split, or leave the setting out"
        )
