"""How much an audit may read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Budget:
    """Limits of each check.

    cells: numbers of a table of features
    entries: entries of a matrix of edges or features, or pairs
    """

    cells: int
    entries: int


QUICK = Budget(cells=2_000_000, entries=4_000_000)  # about a second
FULL = Budget(cells=100_000_000, entries=1 << 62)
