"""Ctrl-C, SIGTERM and a terminal that is closed (SIGHUP): the first asks training to stop after its
step, the second stops at once."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
FIRST = b"\nstopping after this step; once more stops at once\n"


class Interrupted(KeyboardInterrupt):
    """Training was asked to stop, and did between two steps.

    signal: its number; the message says where training stands and what was kept
    """

    def __init__(self, number: int, message: str = "training was stopped") -> None:
        super().__init__(message)
        self.signal = number


class StopRequest:
    """signal: the number of the signal that asked to stop; None as long as none did"""

    def __init__(self) -> None:
        self.signal: int | None = None


@contextmanager
def stop_requests(*, quiet: bool = False, once: bool = False) -> Iterator[StopRequest]:
    """Signals in here are noted, not obeyed at once. Only the main thread can do so; in others
    nothing is changed, as with signals that the process was started to ignore.

    quiet: say nothing; once: a second signal is nothing new, as where a launcher sends one after
        the terminal did
    """
    request = StopRequest()

    def note(number: int, frame: FrameType | None) -> None:
        if request.signal is not None:
            if once:
                return
            raise Interrupted(number)
        request.signal = number
        if quiet:
            return
        with suppress(OSError, ValueError):  # nobody may be there any more to read it
            os.write(sys.__stderr__.fileno() if sys.__stderr__ is not None else 2, FIRST)

    before = {}
    if threading.current_thread() is threading.main_thread():
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                before[number] = signal.signal(number, note)
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
