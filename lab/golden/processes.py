"""Processes that run recorded commands: forks of this one, and separate programs.

A fork costs milliseconds, a program seconds of imports, and a fork leaves nothing behind: each
command begins with the same modules, generators and threads.
"""

from __future__ import annotations

import os
import runpy
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

_LONGEST = 300  # seconds after which a fork is ended


@dataclass(frozen=True)
class Outcome:
    """How a command ended and what it printed; code: its exit code, negative for a signal."""

    code: int
    out: str
    err: str


def forked(function: Callable[[], object], folder: Path) -> Outcome:
    """Call a function in a fork of this process whose working folder is `folder`.

    An exception that leaves the function ends the fork with 1, its type and message on stderr: a
    traceback would name modules, which may move.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = os.fork()
        if process == 0:
            code = 70
            try:
                os.dup2(out.fileno(), 1)
                os.dup2(err.fileno(), 2)
                with (
                    open(1, "w", encoding="utf-8", closefd=False) as shown,
                    open(2, "w", encoding="utf-8", closefd=False) as told,
                    redirect_stdout(shown),
                    redirect_stderr(told),
                ):
                    code = _called(function, folder)
            finally:
                os._exit(code)
        _, status = os.waitpid(process, 0)
        return Outcome(os.waitstatus_to_exitcode(status), _all(out), _all(err))


def command(arguments: Sequence[object], folder: Path) -> Outcome:
    """Run `vrgcn ARGUMENTS` in a fork of this process."""
    return forked(lambda: run_command(arguments), folder)


def run_command(arguments: Sequence[object]) -> None:
    """Do the same as `python -m vrgcn ARGUMENTS`, in this process."""
    sys.argv = ["vrgcn", *map(str, arguments)]
    runpy.run_module("vrgcn", run_name="__main__")


def program(arguments: Sequence[object], folder: Path) -> Outcome:
    """Run `python ARGUMENTS` as a separate program, with the same environment."""
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        stdin=subprocess.DEVNULL,
        timeout=_LONGEST,
        check=False,
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


def _called(function: Callable[[], object], folder: Path) -> int:
    os.chdir(folder)
    signal.alarm(_LONGEST)
    # The same as in a program, however this process was started.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    warnings.showwarning = _show_warning
    warnings.simplefilter("always")
    warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
    code = 0
    try:
        function()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException as error:
        print(f"raised {type(error).__name__}: {error}", file=sys.stderr)
        code = 1
    return code


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: Any = None,
    line: str | None = None,
) -> None:
    """Print a warning without the place in the source that it came from."""
    print(f"{category.__name__}: {message}", file=sys.stderr)


def _all(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "replace")
