"""Forks: what one printed, how it ended, and that it leaves nothing behind."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from pathlib import Path

from lab.golden.processes import Outcome, forked


def test_a_fork_tells_what_it_printed_and_returned(tmp_path: Path) -> None:
    def function() -> None:
        print("here", Path.cwd() == tmp_path)
        print("there", file=sys.stderr)

    assert forked(function, tmp_path) == Outcome(0, "here True\n", "there\n")


def test_an_exit_code_and_an_error_end_it(tmp_path: Path) -> None:
    def fail() -> None:
        raise ValueError("a reason")

    assert forked(lambda: sys.exit(3), tmp_path) == Outcome(3, "", "")
    assert forked(fail, tmp_path) == Outcome(1, "", "raised ValueError: a reason\n")


def test_a_signal_that_ends_it_is_told(tmp_path: Path) -> None:
    done = forked(lambda: os.kill(os.getpid(), signal.SIGKILL), tmp_path)
    assert done.code == -signal.SIGKILL


def test_a_warning_is_told_each_time_without_its_place(tmp_path: Path) -> None:
    def function() -> None:
        for _ in range(2):
            warnings.warn("mind this", UserWarning, stacklevel=1)

    assert forked(function, tmp_path).err == "UserWarning: mind this\n" * 2


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    def function() -> None:
        sys.modules["left_behind"] = sys
        os.environ["LEFT_BEHIND"] = "yes"

    here = Path.cwd()
    forked(function, tmp_path)
    assert "left_behind" not in sys.modules
    assert "LEFT_BEHIND" not in os.environ
    assert Path.cwd() == here
