"""The log of a service that is attacked."""

from __future__ import annotations

import logging

from vrgcn.serve.log import SECONDS, Sparse


class Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def test_each_kind_of_message_is_logged_once_a_minute_with_the_number_of_the_others() -> None:
    now = 0.0
    handler, logger = Lines(), logging.Logger("service")
    handler.addFilter(Sparse(lambda: now))
    logger.addHandler(handler)

    def failed(value: int) -> None:
        try:
            raise OSError(f"file {value}")
        except OSError:
            logger.exception("request %d failed", value)

    for number in range(1000):
        logger.warning("invalid request %d", number)
        failed(number)
    logger.warning("other")
    assert handler.lines == ["invalid request 0", "request 0 failed", "other"]
    now = SECONDS
    logger.warning("invalid request %d", 5)
    assert handler.lines[3:] == ["invalid request 5 (999 more like it since the last one)"]
