"""Notes: what a person should know and need not act on."""

from __future__ import annotations


def print_note(text: str | None) -> None:
    """Print a note where there is one."""
    if text is not None:
        print(f"note: {text}")
