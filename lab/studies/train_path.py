"""Prints how many files of the package `vrgcn train` enters, and how many of its frames lie before
the model's forward and before the formula of the estimator.

    .venv/bin/python -m lab.studies.train_path
    .venv/bin/python -m lab.studies.train_path --list

The run is small: two epochs on `communities`. A file is entered if one of its functions is called;
imports alone do not count.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
import tempfile
from importlib.metadata import entry_points
from pathlib import Path
from types import FrameType
from typing import Any

import vrgcn

PACKAGE = Path(vrgcn.__file__).parent
FLAGS = ("--epochs", "2", "--model", "gcn", "--estimator", "cvd", "--hidden", "8")
FORWARD, FORMULA = ("models/models.py", "forward"), ("engine/formulas.py", None)


class Seen:
    """Files that were entered, and frames of the package on the stack when a place was first
    reached."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.frames: dict[tuple[str, str | None], int] = {}

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        if event != "call":
            return
        file = _within(frame)
        if file is None:
            return
        if file not in self.files and not _importing(frame):
            self.files.add(file)
        for place in (FORWARD, FORMULA):
            wanted = place[1] in (None, frame.f_code.co_name)
            if file == place[0] and wanted and place not in self.frames:
                self.frames[place] = _depth(frame.f_back)


def _within(frame: FrameType) -> str | None:
    """The file of a frame below the package; None for other code."""
    path = Path(frame.f_code.co_filename)
    return path.relative_to(PACKAGE).as_posix() if path.is_relative_to(PACKAGE) else None


def _importing(frame: FrameType | None) -> bool:
    """Whether a module of the package is being imported."""
    while frame is not None:
        if frame.f_code.co_name == "<module>" and _within(frame) is not None:
            return True
        frame = frame.f_back
    return False


def _depth(frame: FrameType | None) -> int:
    """Frames of the package from one outwards."""
    count = 0
    while frame is not None:
        count += _within(frame) is not None
        frame = frame.f_back
    return count


def traced() -> Seen:
    """Train, and watch every call."""
    seen = Seen()
    (command,) = entry_points(group="console_scripts", name="vrgcn")
    command_line = command.load()
    with tempfile.TemporaryDirectory() as home, contextlib.redirect_stdout(io.StringIO()):
        sys.setprofile(seen)
        try:
            command_line(["train", "communities", *FLAGS, "--out", str(Path(home) / "run")])
        finally:
            sys.setprofile(None)
    return seen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="print the files")
    asked = parser.parse_args()
    seen = traced()
    print(f"vrgcn train enters {len(seen.files)} files of {len(list(PACKAGE.rglob('*.py')))}")
    for name, place in (("the model's forward", FORWARD), ("the estimator's formula", FORMULA)):
        print(f"{seen.frames.get(place, 'no')} frames before {name}")
    if asked.list:
        print("\n".join(sorted(seen.files)))


if __name__ == "__main__":
    main()
