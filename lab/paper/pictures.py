"""Panels of a figure as one picture in a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

from vrgcn.files.wording import picture_text
from vrgcn.files.writing import new_file
from vrgcn.pages.page import svg
from vrgcn.pages.panels import TEXT, Panel, legend_of


def save_panels(panels: Sequence[Panel], folder: Path, name: str, columns: int = 3) -> None:
    """Save all panels as one picture, folder/name.png and folder/name.svg, with the legend below
    them."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    columns = min(columns, len(panels))
    lines = -(-len(panels) // columns)
    entries: dict[str, Any] = {}
    with rc_context(TEXT | {"font.size": 10}):
        figure = Figure(figsize=(max(4.2 * columns, 6), 3.3 * lines + 0.6))
        places = figure.subplots(lines, columns, squeeze=False).ravel()
        for axes, panel in zip(places, panels, strict=False):
            panel.draw(axes)
            axes.set_title(fill(picture_text(panel.title), 40), fontsize="medium")
            entries |= legend_of(axes)
        for axes in places[len(panels) :]:
            axes.set_visible(False)
        if entries:
            figure.legend(
                list(entries.values()), list(entries), loc="outside lower center", ncols=6
            )
        with new_file(folder / f"{name}.png") as picture:
            figure.savefig(picture, dpi=150, format="png")
        with new_file(folder / f"{name}.svg") as drawing:
            drawing.write(svg(figure))
