"""Ctrl-C, SIGTERM and a closed terminal (SIGHUP): the first signal asks training to stop after its
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
    """Raised when training was asked to stop and has stopped between two steps.

    signal: its number; the message says where training stands and what was kept
    """

    def __init__(self, number: int, message: str = "training was stopped") -> None:
        super().__init__(message)
        self.signal = number


class StopRequest:
    """A request to stop, which training answers when its step is done.

    signal: the number of the signal that asked to stop; None while there is none
    quiet: print nothing
    once: ignore a second signal, because a launcher sends one after the terminal did
    """

    def __init__(self, *, quiet: bool = False, once: bool = False) -> None:
        self.signal: int | None = None
        self.quiet = quiet
        self.once = once

    def note(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal: the first is kept, the second raises `Interrupted`."""
        if self.signal is not None:
            if self.once:
                return
            raise Interrupted(number)
        self.signal = number
        # If standard error is closed, descriptor 2 may be any file opened since.
        if self.quiet or sys.__stderr__ is None:
            return
        with suppress(OSError, ValueError):  # its reader may be gone
            os.write(sys.__stderr__.fileno(), FIRST)


@contextmanager
def stop_requests(*, quiet: bool = False, once: bool = False) -> Iterator[StopRequest]:
    """Record signals inside this context instead of obeying them at once. Only the main thread can
    do so; in other threads nothing changes, and neither do signals that the process was started to
    ignore.

    A nested context shares the request of the outer one, so that a signal that came too late for
    one run is still known to the caller that starts the next.

    quiet, once: see `StopRequest`
    """
    main = threading.current_thread() is threading.main_thread()
    outer = _noting() if main else None
    if outer is not None:
        yield outer
        return
    request = StopRequest(quiet=quiet, once=once)
    before = {}
    if main:
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                before[number] = signal.signal(number, request.note)
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _noting() -> StopRequest | None:
    """The request that records signals now."""
    handlers = [getattr(signal.getsignal(number), "__self__", None) for number in SIGNALS]
    return next((owner for owner in handlers if isinstance(owner, StopRequest)), None)
