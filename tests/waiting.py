"""Waiting for something that another process or the system does."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
LONG = (
    600.0  # seconds; guards against hanging alone: a busy core starts an interpreter in 10 or more
)


def wait_for(happened: Callable[[], T], what: str) -> T:
    """Call `happened` until it returns something true, and return that.

    what: is waited for; named where it never comes
    """
    end = time.monotonic() + LONG
    while not (found := happened()):
        assert time.monotonic() < end, f"waited {LONG:.0f} seconds for {what}"
        time.sleep(0.01)  # leaves the processor to what is waited for
    return found
