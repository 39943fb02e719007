"""Notes: what a person should know and need not act on."""

from __future__ import annotations

from vrgcn.files.printable import printable


def print_note(text: object | None) -> None:
    """Print a note where there is one."""
    if text is not None:
        print("note:", printable(str(text), keep="\n"))
