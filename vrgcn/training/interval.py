"""Durations, and how often checkpoints are written. No torch: the command line reads it."""

from __future__ import annotations

import re
from dataclasses import dataclass

AUTO_SECONDS = 300.0
AUTO_SHARE = 0.02  # of the time between two checkpoints, the most that writing one may take

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def duration(text: object) -> float | None:
    """Seconds of a text such as "90s", "10m" or "1.5h"; None of anything else."""
    if not isinstance(text, str) or not re.fullmatch(r"\d+(\.\d+)?[smh]", text):
        return None
    return float(text[:-1]) * _UNITS[text[-1]] or None


@dataclass(frozen=True)
class Interval:
    """Between checkpoints: epochs, or seconds of time; neither means none but of interruptions.

    share: the most that writing may take of the time; what takes longer comes less often
    """

    epochs: int | None = None
    seconds: float | None = None
    share: float | None = None

    @staticmethod
    def parse(text: str | int) -> Interval:
        """Such as "1" (epoch), "10m" (minutes; also 90s, 1.5h), "0" (never), "auto"."""
        text = str(text)
        if text == "auto":
            return Interval(seconds=AUTO_SECONDS, share=AUTO_SHARE)
        if re.fullmatch(r"\d+", text):
            return Interval(epochs=int(text) or None)
        seconds = duration(text)
        if seconds is not None:
            return Interval(seconds=seconds)
        raise ValueError(
            f"checkpoint_every {text!r} is neither epochs, such as 1, nor minutes, such as 10m, "
            "nor 0 for none, nor auto"
        )
