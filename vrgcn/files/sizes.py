"""Sizes in bytes, as text."""

from __future__ import annotations


def bytes_text(size: float) -> str:
    """A number of bytes as text, such as 1.5 MB."""
    for unit in ("B", "kB", "MB"):
        if size < 999.5:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:,.3g} GB" if size < 1000 else f"{size:,.0f} GB"
