"""The log of a service: each kind of message once a minute, with the number of those left out."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

SECONDS = 60.0
_LOGGERS = ("uvicorn", "asyncio")
_KINDS = 1000  # that are remembered


class Sparse(logging.Filter):
    """Passes the first message of each kind in each minute.

    A kind is a message without its arguments, or the place in the code that an exception was
    raised at: clients can make very many messages, of few kinds.

    clock: seconds
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._seen: dict[object, tuple[float, int]] = {}  # time of the last one, number since then

    def filter(self, record: logging.LogRecord) -> bool:
        kind, now = _kind(record), self._clock()
        last, more = self._seen.get(kind, (now - SECONDS, 0))
        if now - last < SECONDS:
            self._seen[kind] = last, more + 1
            return False
        if len(self._seen) >= _KINDS:
            self._seen.clear()
        self._seen[kind] = now, 0
        if more:
            record.msg = f"{record.getMessage()} ({more:,} more like it since the last one)"
            record.args = ()
        return True


def _kind(record: logging.LogRecord) -> object:
    error = record.exc_info[1] if record.exc_info else None
    if error is None:
        return record.name, record.msg
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = None if trace is None else (trace.tb_frame.f_code.co_filename, trace.tb_lineno)
    return record.name, type(error), where


def write_log() -> None:
    """Write warnings and errors of the server to stderr."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
    handler.addFilter(Sparse())
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.WARNING)
