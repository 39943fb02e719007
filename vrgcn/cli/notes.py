"""Notes: information for the user that needs no action."""

from __future__ import annotations

from vrgcn.files.printable import printable


def print_note(text: object | None) -> None:
    """Print a note if there is one."""
    if text is not None:
        print("note:", printable(str(text), keep="\n"))
