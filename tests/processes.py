"""Commands in processes of their own, forked from one that has everything imported.

So most of a run's short life is training and writing, not the start of an interpreter.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import optuna  # noqa: F401 - commands import what they need when they run
import pandas  # noqa: F401 - which pyarrow imports where it is installed

from tests.command_imports import import_all
from vrgcn.cli import main as vrgcn

import_all("import", "predict", "train", "tune")


def start(folder: Path, *arguments: str, watch: AbstractContextManager[None] | None = None) -> int:
    """`vrgcn ARGUMENTS` in a process of its own, its output in FOLDER/output; gives its id.

    watch: entered in that process before the command
    """
    process = os.fork()
    if process:
        return process
    try:
        output = os.open(folder / "output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.chdir(folder)
        sys.stdout = os.fdopen(1, "w", closefd=False)  # not what the parent may have put there
        sys.stderr = os.fdopen(2, "w", closefd=False)
        try:
            with watch or nullcontext():
                vrgcn(list(arguments))
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    finally:
        os._exit(70)  # whatever happened: never the parent's code in the child


def wait(
    process: int, seconds: float | None = None, until: Callable[[], bool] = lambda: False
) -> int | None:
    """The exit code of a process, negative if a signal ended it; None if it is still running after
    some seconds, or when `until` holds."""
    end = None if seconds is None else time.monotonic() + seconds
    while True:
        done, status = os.waitpid(process, 0 if end is None else os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if end is not None and (time.monotonic() >= end or until()):
            return None
        time.sleep(0.0002)  # leaves the processor to the process


def output(folder: Path) -> str:
    return (folder / "output").read_text(errors="replace")[-2000:]
