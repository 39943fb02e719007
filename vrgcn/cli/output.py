"""Standard output and standard error that cannot end a command.

If a pipe has no reader, the disk under a log is full, a descriptor is closed or an encoding lacks a
character, the work continues and files are written.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

from vrgcn.files.wording import encodable


class Unbroken:
    """A text stream that continues silently once it cannot be written any more.

    lost: the error that ended its output; None as long as nothing was lost
    """

    def __init__(self, stream: TextIO, lost: OSError | None = None) -> None:
        self._stream = stream
        self.lost = lost

    def write(self, text: str) -> int:
        if self.lost is None:
            try:
                self._write(text)
            except OSError as error:
                self._silence(error)
        return len(text)

    def flush(self) -> None:
        if self.lost is None:
            try:
                self._stream.flush()
            except OSError as error:
                self._silence(error)

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
        except UnicodeEncodeError:
            self._stream.write(encodable(text, self._stream.encoding))

    def _silence(self, error: OSError) -> None:
        """Redirect the descriptor to /dev/null, so that buffered text does not fail when the
        process ends."""
        self.lost = error
        with suppress(OSError):  # a stream in memory has no descriptor
            number = self._stream.fileno()
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, number)
            os.close(nowhere)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def unbroken_output() -> Iterator[Unbroken]:
    """Guard standard output and standard error; yield the guarded standard output."""
    _open_standard_files()
    before = sys.stdout, sys.stderr
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        output, errors = (_guarded(stream, nowhere) for stream in before)
        sys.stdout, sys.stderr = output, errors
        try:
            yield output
        finally:
            output.flush()  # write errors show here, not when the process ends
            errors.flush()
            sys.stdout, sys.stderr = before


def _guarded(stream: TextIO | None, nowhere: TextIO) -> Unbroken:
    """Return the guarded stream.

    stream: None if the process was started without it, as by `>&-`
    """
    if stream is None:
        return Unbroken(nowhere, OSError(errno.EBADF, "it is closed"))
    return Unbroken(stream)


def _open_standard_files() -> None:
    """Open /dev/null in place of descriptors 0, 1 and 2 that are closed.

    The next file that is opened would get their number, and what libraries and other processes
    write to standard output would go into it.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            # The system assigns the lowest free number, which is this one.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
