"""The result of a section: tables for the terminal, numbers for the JSON beside it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from vrgcn.files.writing import write_text
from vrgcn.pages.terminal import text_table


@dataclass(frozen=True)
class Table:
    """A table. headings: the first is of the rows' names; rows: text, as many cells as headings"""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Section:
    """The result of a section.

    tables: for the terminal; results: the same and more as JSON values; notes: explanations of the
        numbers
    """

    tables: Sequence[Table]
    results: dict[str, Any]
    notes: Sequence[str] = ()


def print_section(console: Console, section: Section) -> None:
    for table in section.tables:
        console.print(text_table(table.title, table.headings, table.rows))
    for note in section.notes:
        console.print(f"note: {note}", highlight=False, soft_wrap=True)


def write_json(path: Path, contents: dict[str, Any]) -> None:
    """Write JSON atomically: the file appears under its name only when it is complete."""
    write_text(path, json.dumps(contents, indent=2, allow_nan=False) + "\n")
