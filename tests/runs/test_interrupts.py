"""Signals that ask training to stop, wherever its output goes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from textwrap import indent
from threading import Thread

import pytest

from vrgcn.runs.interrupts import SIGNALS, Interrupted, stop_requests


@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_is_noted_and_the_second_raises(number: int, capfd) -> None:
    before = signal.getsignal(number)
    with stop_requests() as stop:
        assert stop.signal is None
        os.kill(os.getpid(), number)
        assert stop.signal == number
        with pytest.raises(Interrupted):
            os.kill(os.getpid(), number)
    assert signal.getsignal(number) is before
    assert capfd.readouterr().err.count("stopping after this step") == 1


def test_a_signal_inside_is_known_outside_too() -> None:
    with stop_requests() as outer:
        with stop_requests() as inner:
            os.kill(os.getpid(), signal.SIGTERM)
            assert inner.signal == signal.SIGTERM
        assert outer.signal == signal.SIGTERM
        with stop_requests() as later:  # its run stops after its first step
            assert later.signal == signal.SIGTERM
            with pytest.raises(Interrupted):
                os.kill(os.getpid(), signal.SIGTERM)
    with stop_requests() as another:
        assert another.signal is None


def test_a_run_in_another_thread_is_not_stopped_by_the_request_of_the_main_one() -> None:
    found = []

    def run() -> None:
        with stop_requests() as request:
            found.append(request.signal)

    with stop_requests():
        os.kill(os.getpid(), signal.SIGTERM)
        thread = Thread(target=run)
        thread.start()
        thread.join()
    assert found == [None]


def test_a_terminal_that_is_closed_is_among_them() -> None:
    assert signal.SIGHUP in SIGNALS


def test_signals_that_the_process_was_started_to_ignore_stay_so() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        with stop_requests() as stop:
            os.kill(os.getpid(), signal.SIGHUP)
            assert stop.signal is None
    finally:
        signal.signal(signal.SIGHUP, before)


NOTED = """
import os, signal
from vrgcn.runs.interrupts import stop_requests
with stop_requests() as stop:
    os.kill(os.getpid(), signal.SIGTERM)
os._exit(0 if stop.signal == signal.SIGTERM else 1)
"""


TAKEN = f"with open('data', 'w') as file:\n    assert file.fileno() == 2\n{indent(NOTED, '    ')}"


def test_a_file_that_took_the_place_of_standard_error_is_left_alone(tmp_path: Path) -> None:
    script = ["bash", "-c", '"$@" 2>&-', "bash", sys.executable, "-c", TAKEN]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run(script, cwd=tmp_path, env=env, check=False).returncode == 0
    assert (tmp_path / "data").read_text() == ""


def test_nobody_has_to_be_there_to_read_the_answer() -> None:
    reader, writer = os.pipe()
    os.close(reader)  # as after `vrgcn train 2>&1 | head -1`
    assert subprocess.run([sys.executable, "-c", NOTED], stderr=writer, check=False).returncode == 0
    os.close(writer)
