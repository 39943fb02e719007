"""Names that users give, made harmless for a terminal and for pictures."""

from __future__ import annotations

from pathlib import Path


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


def encodable(text: str, encoding: str) -> str:
    """The text with characters that an encoding does not have written out, such as \\xe9."""
    return text.encode(encoding, "backslashreplace").decode(encoding)


def picture_text(text: str) -> str:
    """The text for matplotlib, which would read what is between two dollars as mathematics."""
    return printable(text).replace("$", r"\$")
