"""What an audit found: a severity, a sentence, and what to do; and how much it may read."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Severity = Literal["high", "medium"]


@dataclass(frozen=True)
class Finding:
    """A possible leak.

    severity: high if a score can hardly be trusted, medium if someone should look
    check: the name of the check that found it
    text: a sentence in plain English that names columns, relations and splits
    advice: what to do about it
    """

    severity: Severity
    check: str
    text: str
    advice: str

    def __str__(self) -> str:
        return f"{self.text}; {self.advice}"

    def as_dict(self) -> dict[str, Any]:
        """Return the fields by name, for JSON."""
        return asdict(self)


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
