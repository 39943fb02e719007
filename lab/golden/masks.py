"""Masks: replace text that may differ between two recordings of the same code by a name in
brackets.

Seconds, process ids, versions and paths of this machine are masked, and nothing else: a number that
is not masked is compared to its last digit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

SECONDS = "<seconds>"
_NUMBER = r"\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?"
_TIME = re.compile(rf"(?<![\w.]){_NUMBER}(?= (?:s|ms|seconds|minutes)\b)")
_ADDRESS = re.compile(r"0x[0-9a-f]{6,}")
_PROCESS = re.compile(r"(?<=\bprocess )\d+|(?<=\bpid )\d+")
_EVENTS = re.compile(r"events\.out\.tfevents\.\S+")
_PARTIAL = re.compile(r"\.[0-9a-f]{8,32}\.partial")
# Keys of JSON files whose values are seconds, and keys that name the program that wrote the file.
_SECONDS_KEY = re.compile(r"(?:^|_)seconds$|^used$")
_VERSION_KEYS = ("vrgcn", "torch")

_BOX = re.compile(r"[│┃┏┗┡└┌├]")
_LINE = re.compile(r"([━─═])\1+")
_SPACES = re.compile(r" {2,}")
_SECONDS_COLUMN = re.compile(r"s|(?:.* )?seconds(?: .*)?")


@dataclass(frozen=True)
class Masks:
    """Masks everything in a text that belongs to one machine, one moment or one process.

    places: path on this machine -> its name, such as "<work>"; longer paths are replaced first
    versions: text -> its name, such as "vrgcn 0.1.0" -> "vrgcn <version>"
    """

    places: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)

    def text(self, text: str) -> str:
        """Mask places, versions, ids and addresses; spaces and lines stay as they are."""
        for replaced in (self.places, self.versions):
            for found in sorted(replaced, key=len, reverse=True):
                text = text.replace(found, replaced[found])
        text = _ADDRESS.sub("<address>", text)
        text = _PROCESS.sub("<id>", text)
        text = _PARTIAL.sub(".<random>.partial", text)
        return _EVENTS.sub("events.out.tfevents.<name>", text)

    def output(self, text: str) -> str:
        """Mask the output of a command: also seconds, in sentences and in columns of tables.

        Tables lose the widths of their columns, which follow the widths of seconds.
        """
        lines = [line.rstrip() for line in self.text(text).splitlines()]
        return "\n".join(_TIME.sub(SECONDS, line) for line in _tables(lines))

    def json(self, value: Any) -> Any:
        """Mask a value of a JSON file: seconds and versions by their keys, texts as `text` does."""
        if isinstance(value, dict):
            return {self.text(key): self._entry(key, item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.json(item) for item in value]
        return self.text(value) if isinstance(value, str) else value

    def _entry(self, key: str, item: Any) -> Any:
        if _SECONDS_KEY.search(key) and isinstance(item, int | float):
            return SECONDS
        if key in _VERSION_KEYS and isinstance(item, str):
            return "<version>"
        return self.json(item)


def _tables(lines: list[str]) -> list[str]:
    """Return the lines with their tables narrowed, and their columns of seconds masked."""
    columns: set[int] = set()  # columns of seconds in the present table
    narrowed = []
    for line in lines:
        if not _BOX.search(line):
            narrowed.append(line)
            continue
        if "┏" in line:
            columns = set()
        if "┃" in line:
            cells = [cell.strip() for cell in line.split("┃")]
            columns |= {i for i, cell in enumerate(cells) if _SECONDS_COLUMN.fullmatch(cell)}
        cells = [
            re.sub(_NUMBER, SECONDS, cell) if place in columns else cell
            for place, cell in enumerate(line.split("│"))
        ]
        narrowed.append(_SPACES.sub(" ", _LINE.sub(r"\1", "│".join(cells))))
    return narrowed
