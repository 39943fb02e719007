"""Counts in words for people, such as "2,000 nodes"."""

from __future__ import annotations


def counted(count: int, one: str, many: str | None = None) -> str:
    """ "1 node", "2,000 nodes"; `many` where it is not `one` with an s."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
