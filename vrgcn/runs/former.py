"""The model that a run's folder has before training resumes: it is not replaced by a worse one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vrgcn.inference import MODEL
from vrgcn.runs.folder import METRICS, RESULT


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
    found: FormerModel | None = None
    for epoch, val in _epochs(folder):
        point = FormerModel(epoch, val if scored else None, better)
        if found is None or point.beats(found.epoch, found.val):
            found = point
    return found


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
