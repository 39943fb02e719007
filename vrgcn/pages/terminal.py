"""Tables for the terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from vrgcn.files.wording import encodable, printable, shortened

_LONGEST = 500  # characters of a cell


def text_table(
    title: str, headings: Sequence[str], rows: Sequence[Sequence[str]], names: int = 1
) -> Table:
    """Return a table for the terminal.

    headings and rows: plain text, as many cells as headings; brackets are no markup
    names: number of leading columns that name the rows; the others are numbers
    """
    table = Table(title=_text(title), title_justify="left")
    for column, heading in enumerate(headings):
        table.add_column(_text(heading, keep="\n"), justify="left" if column < names else "right")
    for row in rows:
        table.add_row(*map(_text, row))
    return table


def _text(name: str, keep: str = "") -> Text:
    """Return the name as standard output can show it: escaping it later would break the columns."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return Text(encodable(printable(shortened(name, _LONGEST), keep), encoding))


def print_table(table: Table) -> None:
    """Print a table on standard output; names wrap in a narrow window, but no number is cut or
    broken."""
    console = Console()
    unlimited = console.options.update(max_width=10_000)
    if Measurement.get(console, unlimited, table).maximum <= console.width:
        console.print(table)
        return
    for column in table.columns:
        heading = [str(column.header)] if column.no_wrap else str(column.header).split()
        if column.justify == "right" or column.no_wrap:
            texts = [*map(str, column.cells), *heading]
            column.width = max(map(cell_len, texts), default=0)
    needed = Measurement.get(console, unlimited, table).minimum
    Console(width=max(console.width, needed)).print(table)
