"""Numbers with units, for people."""

from __future__ import annotations


def seconds_text(seconds: float) -> str:
    """1.23 s, or 2 min 3 s."""
    if seconds < 100:
        return f"{seconds:.2f} s"
    return f"{int(seconds // 60)} min {int(seconds % 60)} s"


def bytes_text(size: float) -> str:
    """Such as 1.5 MB."""
    for unit in ("B", "kB", "MB"):
        if size < 999.5:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:,.3g} GB" if size < 1000 else f"{size:,.0f} GB"
