"""Tables for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table


def text_table(
    title: str, headings: Sequence[str], rows: Sequence[Sequence[str]], names: int = 1
) -> Table:
    """headings and rows: text, as many cells as headings
    names: how many columns come first that name the rows; the others are numbers
    """
    table = Table(title=title, title_justify="left")
    for column, heading in enumerate(headings):
        table.add_column(heading, justify="left" if column < names else "right")
    for row in rows:
        table.add_row(*row)
    return table
