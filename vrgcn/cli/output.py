"""Output that nobody reads any more, as after `vrgcn train … | head -1`."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

_NOBODY = (errno.EPIPE, errno.EIO)  # of a pipe, of a terminal


class Unbroken:
    """A stream that goes on silently once the pipe or the terminal it leads to is closed."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError as error:
            self._silence(error)
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as error:
            self._silence(error)

    def _silence(self, error: OSError) -> None:
        """What is still buffered, and all that follows, goes nowhere."""
        if error.errno not in _NOBODY:
            raise error
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def unbroken_output() -> Iterator[None]:
    """In here, a reader that goes away is no reason to stop."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = Unbroken(sys.stdout), Unbroken(sys.stderr)
    try:
        yield
    finally:
        sys.stdout.flush()  # a pipe that broke since shows here, not when the process ends
        sys.stdout, sys.stderr = before
