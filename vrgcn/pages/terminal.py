"""Tables for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from vrgcn.files.printable import printable


def text_table(
    title: str, headings: Sequence[str], rows: Sequence[Sequence[str]], names: int = 1
) -> Table:
    """headings and rows: plain text, as many cells as headings; brackets are no markup
    names: how many columns come first that name the rows; the others are numbers
    """
    table = Table(title=Text(printable(title)), title_justify="left")
    for column, heading in enumerate(headings):
        table.add_column(
            Text(printable(heading, keep="\n")), justify="left" if column < names else "right"
        )
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    return table
