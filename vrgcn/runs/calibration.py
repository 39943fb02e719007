"""Calibration at the end of a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.graph.graph import Graph
from vrgcn.inference.calibration import ENOUGH, NOT_BETTER, Calibration, calibrate
from vrgcn.inference.predict import predict
from vrgcn.inference.saved import SavedModel
from vrgcn.targets.predicted import predicts_labels
from vrgcn.tasks import find_task

S = TypeVar("S", bound=SavedModel)


def calibrate_run(saved: S, graph: Graph, wanted: str, note: Callable[[str], None]) -> S:
    """Return the saved model of a run, calibrated on validation nodes if `wanted` says so.

    graph: features scaled; wanted: as `Settings.calibrate`
    note: called with what was found, a sentence at a time
    """
    if wanted == "never" or not len(graph.val) or not predicts_labels(graph):
        return saved
    if wanted == "auto" and len(graph.val) < ENOUGH:
        return saved
    assert graph.labels is not None
    plain = saved.before(Calibration)
    outputs = predict(plain, graph, kind="all")
    task = find_task(saved.task)
    found = calibrate(task, outputs, graph.labels, graph.val)
    if task.has_classes:
        note(_temperature_text(found))
    if task.has_classes and not task.several and graph.num_classes == 2 and found.threshold is None:
        note(
            "the label is the more probable class: no other threshold had a better F1 on held-out "
            "validation nodes"
        )
    return plain.then(found)


def _temperature_text(found: Calibration) -> str:
    if found.temperature == 1:
        return f"probabilities are not calibrated: {NOT_BETTER}"
    return f"probabilities are calibrated on validation nodes: temperature {found.temperature:.3g}"


def check_calibrate(wanted: str, graph: Graph) -> None:
    """Raise before the training if it could not be calibrated after it as the settings say."""
    if wanted != "always":
        return
    if len(graph.val) < 2:
        raise InputError(
            f"{setting('calibrate', 'always')} calibrates on the validation nodes, and the graph "
            f"has {len(graph.val)}: give it a val split, or leave the setting out"
        )
