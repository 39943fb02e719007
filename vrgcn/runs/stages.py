"""Stages that follow a trained model at the end of a run: Correct & Smooth, then calibration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from torch import nn

from vrgcn.baselines.problem import Problem
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.graph.graph import Graph
from vrgcn.inference.calibration import ENOUGH, NOT_BETTER, Calibration, calibrate
from vrgcn.inference.choose_smoothing import choose_smoothing
from vrgcn.inference.predict import predict
from vrgcn.inference.saved import SavedModel
from vrgcn.targets.predicted import predicts_labels
from vrgcn.tasks import find_task
from vrgcn.training.result import TrainResult


def smooth_run(
    model: nn.Module,
    graph: Graph,
    result: TrainResult,
    smooth: str,
    score: str | None,
    note: Callable[[str], None],
) -> tuple[TrainResult, SavedModel]:
    """Return the result and the saved model of a run, corrected and smoothed if `smooth` says so.

    graph: features scaled; smooth: as `Settings.smooth`; score: as `TrainConfig.metric`
    note: called if nothing was tried
    """
    saved = SavedModel.of(model)
    if smooth == "never" or not len(graph.val) or graph.kinds.named:
        return result, saved
    metric = find_task(graph.task).find_metric(score)
    chosen = choose_smoothing(saved, Problem.of(graph, metric), always=smooth == "always")
    if chosen.reason is not None:
        note(
            f"predictions are not smoothed: {chosen.reason}; {setting('smooth', 'always')} tries it"
        )
    if chosen.smoothing is None:
        return result, saved
    saved, test = saved.then(chosen.smoothing), result.test
    if len(graph.test):
        assert graph.labels is not None
        outputs = predict(saved, graph, graph.test)
        test = metric.compute(outputs, graph.labels[graph.test])
    return replace(result, val=chosen.val, test=test, unsmoothed=chosen.alone), saved


def check_smooth(smooth: str, graph: Graph) -> None:
    """Raise before the training if it could not be smoothed after it as the settings say."""
    if smooth != "always":
        return
    if graph.kinds.named:
        raise InputError(
            f"{setting('smooth', 'always')} spreads labels between nodes of one kind, and the "
            "graph has several kinds; leave the setting out"
        )
    if not len(graph.val):
        raise InputError(
            f"{setting('smooth', 'always')} chooses how far to spread on the validation nodes, and "
            "the graph has none: give it a val split, or leave the setting out"
        )


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
