"""Turns of threads at a live model: one at a time, and changes before computations."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Turns:
    """A lock that its owner may take again. A thread that changes is served before those that
    compute.

    with turns:                 computes
    with turns.changing(5):     changes; raises a `TimeoutError` after five seconds of waiting
    """

    def __init__(self) -> None:
        self._free = threading.Condition()
        self._owner: int | None = None
        self._depth = 0
        self._changes = 0  # that wait

    def __enter__(self) -> None:
        with self._free:
            if not self._again():
                self._free.wait_for(lambda: self._owner is None and not self._changes)
                self._own()

    def __exit__(self, *_: object) -> None:
        with self._free:
            self._depth -= 1
            if not self._depth:
                self._owner = None
                self._free.notify_all()

    @contextmanager
    def changing(self, seconds: float | None = None) -> Iterator[None]:
        """Take a turn before all threads that compute. seconds: to wait at most"""
        with self._free:
            if not self._again():
                self._changes += 1
                try:
                    if not self._free.wait_for(lambda: self._owner is None, seconds):
                        raise TimeoutError(
                            f"the model was busy for {seconds:.2g} seconds; nothing was changed"
                        )
                    self._own()
                finally:
                    self._changes -= 1
                    self._free.notify_all()
        try:
            yield
        finally:
            self.__exit__()

    def _again(self) -> bool:
        if self._owner != threading.get_ident():
            return False
        self._depth += 1
        return True

    def _own(self) -> None:
        self._owner, self._depth = threading.get_ident(), 1
