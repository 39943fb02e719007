"""How often checkpoints are written. No torch here: the command line reads it."""

from __future__ import annotations

import re
from dataclasses import dataclass

AUTO_SECONDS = 300.0
AUTO_SHARE = 0.02  # of the time between two checkpoints, the most that writing one may take


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
        """Such as "1" (epoch), "10m" (minutes), "0" (never), "auto"."""
        text = str(text)
        if text == "auto":
            return Interval(seconds=AUTO_SECONDS, share=AUTO_SHARE)
        if re.fullmatch(r"\d+", text):
            return Interval(epochs=int(text) or None)
        if re.fullmatch(r"\d+(\.\d+)?m", text) and float(text[:-1]) > 0:
            return Interval(seconds=60 * float(text[:-1]))
        raise ValueError(
            f"checkpoint_every {text!r} is neither epochs, such as 1, nor minutes, such as 10m, "
            "nor 0 for none, nor auto"
        )
