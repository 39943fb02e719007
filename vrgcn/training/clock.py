"""Measures the time of a run over all its processes, and decides when it has to stop."""

from __future__ import annotations

import time


class Clock:
    """Measures time from its creation.

    limit: seconds after which the run must have ended; None: never
    """

    def __init__(self, limit: float | None = None) -> None:
        self.limit = limit
        self._begun = self.now()
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
