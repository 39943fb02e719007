"""Times: durations that settings name, intervals between checkpoints, and the clock of a run over
all its processes, which decides when it has to stop. No torch: the command line reads it."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass

from vrgcn.files.mistakes import InputError

AUTO_SECONDS = 300.0
AUTO_SHARE = 0.02  # largest share of the time that writing checkpoints may take

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def duration(text: object) -> float | None:
    """Return the seconds of a text such as "90s", "10m" or "1.5h"; None for any other text."""
    if not isinstance(text, str) or not re.fullmatch(r"\d+(\.\d+)?[smh]", text):
        return None
    return float(text[:-1]) * _UNITS[text[-1]] or None


@dataclass(frozen=True)
class Interval:
    """The interval between checkpoints in epochs or in seconds; with neither, only interruptions
    write one.

    share: the largest share of the time that writing may take; slower writing makes checkpoints
        rarer
    """

    epochs: int | None = None
    seconds: float | None = None
    share: float | None = None

    @staticmethod
    def parse(text: str | int) -> Interval:
        """Parse a text such as "1" (epoch), "10m" (minutes; also 90s, 1.5h), "0" (never) or
        "auto"."""
        text = str(text)
        if text == "auto":
            return Interval(seconds=AUTO_SECONDS, share=AUTO_SHARE)
        if re.fullmatch(r"\d+", text):
            return Interval(epochs=int(text) or None)
        seconds = duration(text)
        if seconds is not None:
            return Interval(seconds=seconds)
        raise InputError(
            f"checkpoint_every {text!r} is neither epochs, such as 1, nor minutes, such as 10m, "
            "nor 0 for none, nor auto"
        )


class Clock:
    """Measures time from its creation.

    limit: seconds after which the run must have ended; None: never
    begun: a time by `now` before that, from which it measures
    """

    def __init__(self, limit: float | None = None, begun: float | None = None) -> None:
        self.limit = limit
        self._begun = self.now() if begun is None else begun
        self._before = 0.0
        self._step = self._evaluation = 0.0

    @staticmethod
    def now() -> float:
        """Return the time in seconds. All times of a run are measured by it."""
        return time.monotonic()

    @property
    def used(self) -> float:
        """Seconds so far."""
        return self._before + self.now() - self._begun

    def go_on(self, used: float) -> None:
        """Continue from the seconds that earlier processes used; the time of this process still
        counts."""
        self._before += max(0.0, used - self.used)

    def late(self, needed: float = 0.0) -> bool:
        """Return True if fewer seconds are left than needed."""
        return self.limit is not None and self.used + needed >= self.limit

    def stepped(self, seconds: float) -> None:
        self._step = max(self._step, seconds)

    def evaluated(self, seconds: float) -> None:
        self._evaluation = max(self._evaluation, seconds)

    @property
    def over(self) -> bool:
        """True if there is no time for one more step and the evaluations that may follow it: on the
        validation nodes if it ends an epoch, and at the end on the test nodes."""
        if self.limit is None:
            return False
        return self.used + self._step + 2 * self._evaluation >= self.limit
