"""The file of a run's metrics: a line for each epoch, written while it trains."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

from vrgcn.files.writing import explained, write_text
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
