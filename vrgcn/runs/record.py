"""Records training in the folder of a run, as `vrgcn report` and `predict` read it: its options, a
line for each epoch, the best model so far, checkpoints, the result."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from vrgcn.files.writing import FULL, explained, write_text
from vrgcn.inference import MODEL
from vrgcn.inference.saved import SavedModel, save_model
from vrgcn.runs.card import Facts, write_end
from vrgcn.runs.checkpoint import checkpoints_in
from vrgcn.runs.config_file import write_settings
from vrgcn.runs.folder import BETTER_MODEL, CHECKPOINTS, CONFIG, METRICS, RESULT, remove_card
from vrgcn.training.config import TrainConfig
from vrgcn.training.listener import Callbacks, Listener, Listeners
from vrgcn.training.result import TrainResult
from vrgcn.training.state import Epoch


class MetricsFile:
    """Writes metrics.jsonl.

    tolerant: runs a write and returns False if a full disk prevented it; see Record
    """

    def __init__(self, path: Path, tolerant: Callable[[Callable[[], None]], bool]) -> None:
        self.path = path
        self.tolerant = tolerant
        self._points: list[Epoch] = []
        self._whole = False  # True if the file has every line

    def restore(self, points: list[Epoch]) -> None:
        """Replace the file's lines by those of the curve so far."""
        self._points = list(points)
        self._whole = self.tolerant(self._write)

    def add(self, point: Epoch) -> None:
        """Append a line and flush it to disk, so that it survives if the run is cut short."""
        self._points.append(point)
        self._whole = self.tolerant(self._append if self._whole else self._write)

    def finish(self, points: list[Epoch]) -> None:
        """Write all lines again if a full disk kept some from the file, or if the last epoch was
        evaluated after its line was written.

        points: the whole curve
        """
        if not self._whole or points != self._points:
            self._points = list(points)
            self._write()

    def _append(self) -> None:
        size = self.path.stat().st_size
        try:
            with explained(self.path), open(self.path, "a", encoding="utf-8") as file:
                file.write(_line(self._points[-1]))
        except OSError:
            os.truncate(self.path, size)  # remove an incomplete line
            raise

    def _write(self) -> None:
        write_text(self.path, "".join(map(_line, self._points)))


def _line(point: Epoch) -> str:
    return json.dumps(point.as_dict()) + "\n"


@dataclass(frozen=True)
class FormerModel:
    """epoch: of its weights; val: its validation score, None if the last epoch's weights are kept

    better: whether a validation score is better than another one
    """

    epoch: int
    val: float | None
    better: Callable[[float, float], bool]

    def beats(self, epoch: int, val: float | None) -> bool:
        """Return True if this model is better than that of an epoch; without validation scores,
        if it was trained for longer."""
        if self.val is None or val is None:
            return self.epoch > epoch
        return self.better(self.val, val)

    def __str__(self) -> str:
        scored = "" if self.val is None else f" (validation score {self.val:.4g})"
        return f"of epoch {self.epoch}{scored}"


def former_model(
    folder: Path, better: Callable[[float, float], bool], *, scored: bool
) -> FormerModel | None:
    """Return the model in the folder of a run; None if there is none.

    scored: True if weights are chosen by their validation score, and not as the last ones
    """
    if not (folder / MODEL).is_file():
        return None
    former: FormerModel | None = None
    for epoch, val in _epochs(folder):
        point = FormerModel(epoch, val if scored else None, better)
        if former is None or point.beats(former.epoch, former.val):
            former = point
    return former


def _epochs(folder: Path) -> Iterator[tuple[int, float | None]]:
    """Epochs and validation scores that the files of a run have; a torn line has none."""
    for file in (METRICS, RESULT):
        path = folder / file
        lines = path.read_bytes().splitlines() if path.is_file() else []
        whole = [b"".join(lines)] if file == RESULT else lines
        for line in whole:
            with suppress(ValueError, KeyError, TypeError):
                values: dict[str, Any] = json.loads(line)
                yield int(values["epoch"]), values["val"]


Finish = Callable[[TrainResult, Callable[[str], None]], tuple[TrainResult, SavedModel]]


class Record(Listener):
    """Writes the events of a run to its folder: settings, a line for each epoch, the best model so
    far.

    options: the settings that config.toml has, by which the run can be repeated
    facts: what its card says about the graph
    tell: called with a note if the disk is full and training continues
    check: called after each epoch and before each checkpoint; if it raises, the run stops
    former: the best model that the folder has from before; it stays until there is one as good
    """

    def __init__(
        self,
        folder: Path,
        model: nn.Module,
        config: TrainConfig,
        options: Mapping[str, Any],
        facts: Facts,
        tell: Callable[[str], None],
        check: Callable[[], None] | None = None,
        former: FormerModel | None = None,
    ) -> None:
        self.folder = folder
        self.model = model
        self.config = config
        self.options = options
        self.facts = facts
        self.tell = tell
        self.check = check
        self.former = former
        self.metrics = MetricsFile(folder / METRICS, self._written)

    def begin(self) -> None:
        """Write the settings; from here on the folder holds an unfinished run."""
        (self.folder / RESULT).unlink(missing_ok=True)
        remove_card(self.folder)
        write_settings(self.folder / CONFIG, self.options)

    def restore(self, curve: list[Epoch]) -> None:
        self.begin()
        self.metrics.restore(curve)

    def epoch(self, point: Epoch) -> None:
        self.checkpoint()
        self.metrics.add(point)

    def kept(self, point: Epoch) -> None:
        if self.former is None or not self.former.beats(point.epoch, point.val):
            self._written(lambda: save_model(self.model, self.folder / MODEL))

    def checkpoint(self) -> None:
        if self.check is not None:
            self.check()

    def finish(self, result: TrainResult, saved: nn.Module | SavedModel) -> None:
        """Write the model, the card and, last, the result."""
        self.metrics.finish(result.curve)
        saved = saved if isinstance(saved, SavedModel) else SavedModel.of(saved)
        self._keep_former(result)
        save_model(saved, self.folder / MODEL)
        write_end(self.folder, self.options, _scores(result), saved, self.facts)

    def _keep_former(self, result: TrainResult) -> None:
        """Give the folder's model another name if it is better than what training ended with."""
        former = self.former
        if former is None or not former.beats(result.epoch, result.val):
            return
        os.replace(self.folder / MODEL, self.folder / BETTER_MODEL)
        self.tell(
            f"the model of the former training, {former}, is better than the one of this training: "
            f"it is kept as {self.folder / BETTER_MODEL}"
        )

    def _written(self, write: Callable[[], None]) -> bool:
        """Run `write`; return False if the disk is full and the config says to continue."""
        try:
            write()
        except OSError as error:
            if error.errno not in FULL or self.config.on_full_disk == "stop":
                raise
            self.tell(f"{error}; training continues, and writes it again later")
            return False
        return True


def recorded(
    folder: Path,
    model: nn.Module,
    config: TrainConfig,
    train: Callable[[Listener], TrainResult],
    *,
    options: Mapping[str, Any],
    facts: Facts,
    listener: Listener,
    finish: Finish | None = None,
    check: Callable[[], None] | None = None,
    former: FormerModel | None = None,
    resume: bool = False,
) -> TrainResult:
    """Train and keep a record in the folder, except for the checkpoints.

    train: trains, calling the listener that it is given
    listener: called after the record is written
    finish: makes the result and the model that are kept, from the result of the training and a
        function that is called with notes; None: they are kept as they are
    others: see Record
    """
    if not listener.hears_notes:
        listener = Listeners(listener, Callbacks(on_note=print))
    record = Record(folder, model, config, options, facts, listener.note, check, former)
    if not resume or not checkpoints_in(folder / CHECKPOINTS):
        if resume:
            stays = "" if former is None else f"; its model, {former}, stays until one is as good"
            listener.note(f"{folder} has no checkpoint: training begins again at epoch 1{stays}")
        record.begin()
    result = train(Listeners(record, listener))
    saved: nn.Module | SavedModel = model
    if finish is not None:
        result, saved = finish(result, listener.note)
    record.finish(result, saved)
    return result


def _scores(result: TrainResult) -> dict[str, Any]:
    return {
        "metric": result.metric.title,
        "epoch": result.epoch,
        "val": result.val,
        "test": result.test,
        "unsmoothed_val": result.unsmoothed,
        "seconds": result.seconds,
        "evaluation_seconds": result.evaluation_seconds,
        "diagnostics_seconds": result.diagnostics_seconds,
        "checkpoint_seconds": result.checkpoint_seconds,
        "race_seconds": result.race_seconds,
        "compared": result.compared,
        "threads": torch.get_num_threads(),
        "stopped": result.stopped,
    }
