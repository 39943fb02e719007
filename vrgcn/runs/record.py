"""Training that is recorded in the folder of a run, as `vrgcn report` and `predict` read it: its
options, a line for each epoch, the best model so far, checkpoints, the result."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from vrgcn.files.writing import FULL, write_text
from vrgcn.inference import MODEL
from vrgcn.inference.saved import save_model
from vrgcn.runs.checkpoint import checkpoints_in
from vrgcn.runs.config_file import write_settings
from vrgcn.runs.folder import CHECKPOINTS, CONFIG, METRICS, RESULT
from vrgcn.runs.metrics_file import MetricsFile
from vrgcn.training.callbacks import Callbacks
from vrgcn.training.config import TrainConfig
from vrgcn.training.result import TrainResult
from vrgcn.training.state import Epoch


def recorded(
    folder: Path,
    model: nn.Module,
    config: TrainConfig,
    train: Callable[[Callbacks], TrainResult],
    *,
    options: dict[str, Any],
    told: Callbacks,
    check: Callable[[], None] | None = None,
) -> TrainResult:
    """Train, and keep what is told of it in the folder, the checkpoints aside.

    train: makes the run, telling these callbacks
    options: what the run's config.toml says, by which it can be repeated
    told: who else is to be told
    check: called after each epoch and before each checkpoint; an error of it stops the run
    """
    on_note = told.on_note or print
    tolerant = partial(_written, config, on_note)
    metrics = MetricsFile(folder / METRICS, tolerant)

    def restored(curve: list[Epoch]) -> None:
        _begin(folder, options)
        metrics.restore(curve)
        if told.on_restore is not None:  # last: it may raise StopTraining
            told.on_restore(curve)

    def epoch(point: Epoch) -> None:
        if check is not None:
            check()
        metrics.add(point)
        if told.on_epoch is not None:
            told.on_epoch(point)

    def kept(point: Epoch) -> None:
        tolerant(lambda: save_model(model, folder / MODEL))

    if not checkpoints_in(folder / CHECKPOINTS):
        _begin(folder, options)
    result = train(
        Callbacks(
            on_epoch=epoch,
            on_kept=kept,
            on_step=told.on_step,
            on_checkpoint=check,
            on_restore=restored,
            on_note=on_note,
        )
    )
    metrics.finish()
    save_model(model, folder / MODEL)
    write_text(folder / RESULT, json.dumps(_scores(result), indent=2) + "\n")
    return result


def _begin(folder: Path, options: dict[str, Any]) -> None:
    """From here on the run is one that has not finished, by these options."""
    (folder / RESULT).unlink(missing_ok=True)
    write_settings(folder / CONFIG, options)


def _written(
    config: TrainConfig, on_note: Callable[[str], None], write: Callable[[], None]
) -> bool:
    """Whether there was room on the disk; where there is none, training goes on if it shall."""
    try:
        write()
    except OSError as error:
        if error.errno not in FULL or config.on_full_disk == "stop":
            raise
        on_note(f"{error}; training goes on, and writes it again later")
        return False
    return True


def _scores(result: TrainResult) -> dict[str, Any]:
    return {
        "metric": result.metric.title,
        "epoch": result.epoch,
        "val": result.val,
        "test": result.test,
        "seconds": result.seconds,
        "evaluation_seconds": result.evaluation_seconds,
        "diagnostics_seconds": result.diagnostics_seconds,
        "checkpoint_seconds": result.checkpoint_seconds,
        "threads": torch.get_num_threads(),
        "stopped": result.stopped,
    }
