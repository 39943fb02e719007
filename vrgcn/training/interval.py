"""Durations, and how often checkpoints are written. Imports no torch: the command line reads it."""

from __future__ import annotations

import re
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
