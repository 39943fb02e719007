"""Correct & Smooth at the end of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from torch import nn

from vrgcn.baselines.problem import Problem
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.graph.graph import Graph
from vrgcn.inference.choose_smoothing import choose_smoothing
from vrgcn.inference.predict import predict
from vrgcn.inference.saved import SavedModel
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
