"""Durations, for people."""

from __future__ import annotations


def seconds_text(seconds: float) -> str:
    """1.23 s, or 2 min 3 s."""
    if seconds < 100:
        return f"{seconds:.2f} s"
    return f"{int(seconds // 60)} min {int(seconds % 60)} s"
