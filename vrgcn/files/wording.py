"""Counts, sizes and durations in words, deviations of a few numbers, and names that users give,
made harmless for a terminal and for pictures."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path


def bytes_text(size: float) -> str:
    """A number of bytes as text, such as 1.5 MB."""
    for unit in ("B", "kB", "MB"):
        if size < 999.5:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:,.3g} GB" if size < 1000 else f"{size:,.0f} GB"


def seconds_text(seconds: float) -> str:
    """Format a duration, such as 1.23 s or 2 min 3 s."""
    if seconds < 100:
        return f"{seconds:.2f} s"
    return f"{int(seconds // 60)} min {int(seconds % 60)} s"


def deviation(values: Sequence[float]) -> float | None:
    """Return the standard deviation of the sample; None for one value."""
    from statistics import stdev

    return stdev(values) if len(values) > 1 else None


def counted(count: int, one: str, many: str | None = None) -> str:
    """ "1 node", "2,000 nodes"; `many` where it is not `one` with an s."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


_PICTURED = 200  # characters of a text in a picture; matplotlib takes minutes for 100,000

# user:password@ in a URL; digits between : and / are the port of a host.
_IN_USER = re.compile(r"([A-Za-z][\w+.-]*://[^\s/?#@:\[\]]*):(?!\d*(?:[/?#,\s]|$))[^\s@]+@")
_IN_SETTING = re.compile(r"((?:[?&]|\b)(?:ssl)?password=)[^&#\s'\"]+", re.IGNORECASE)


def printable(name: str | Path, keep: str = "") -> str:
    """The name with what cannot be seen written out: an escape as \\x1b, a line's end as \\n.

    A name may hold the bytes by which terminals are cleared, coloured or told what to type.

    keep: characters to leave as they are, such as the line ends of a message of several lines
    """
    text = str(name)
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c in keep else c.encode("unicode_escape").decode("ascii")
        for c in text
    )


def print_note(text: object | None) -> None:
    """Print a note, information that needs no action, if there is one."""
    if text is not None:
        print("note:", printable(str(text), keep="\n"))


def shortened(text: str, most: int) -> str:
    """The text, or its beginning if it has more than `most` characters."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def encodable(text: str, encoding: str) -> str:
    """The text with characters that an encoding does not have written out, such as \\xe9."""
    return text.encode(encoding, "backslashreplace").decode(encoding)


def picture_text(text: str) -> str:
    """The text for matplotlib, which would read what is between two dollars as mathematics."""
    return printable(shortened(text, _PICTURED)).replace("$", r"\$")


def has_password(url: str) -> bool:
    """True if a URL holds a password, after the user's name or as a setting."""
    address = url.partition("#")[0]
    return bool(_IN_USER.match(url) or _IN_SETTING.search(address))


def without_password(text: str) -> str:
    """The text with *** in place of the passwords of URLs in it."""
    return _IN_SETTING.sub(r"\1***", _IN_USER.sub(r"\1:***@", text))
