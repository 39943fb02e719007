"""Figures of several panels: one picture in a file, and on a page a figure for each panel.

A wide picture cannot be read on a phone. So a panel is a function that draws on any axes, and both
forms use the same panels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from vrgcn.pages.page import Page

INCHES = (5.4, 3.6)  # at the width of a phone, text of 11.5 points is still legible
TEXT: dict[Any, Any] = {
    "font.size": 11.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "figure.constrained_layout.use": True,
}


LOG_RATIO = 20.0
_NOTHING = 1e-6  # relative to the exact value: smaller is rounding


@dataclass(frozen=True)
class Panel:
    """One panel of a figure.

    title: above the panel in a picture, below it on a page
    draw: draws on matplotlib axes, with labels for entries of the legend
    """

    title: str
    draw: Callable[[Any], None]


def show_panels(page: Page, panels: Sequence[Panel]) -> None:
    """Add a legend of all panels, and below it a figure for each."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    figures = []
    entries: dict[str, Any] = {}
    with rc_context(TEXT):
        for panel in panels:
            figure = Figure(figsize=INCHES)
            axes = figure.subplots()
            panel.draw(axes)
            entries |= legend_of(axes)
            figures.append((figure, panel.title))
    if entries:
        page.legend((label, swatch(handle)) for label, handle in entries.items())
    with rc_context(TEXT):  # ticks are created when a figure is written
        page.figures(figures)


def legend_of(axes: Any) -> dict[str, Any]:
    """Return the drawn lines, by their labels."""
    handles, labels = axes.get_legend_handles_labels()
    return dict(zip(labels, handles, strict=True))


def swatch(handle: Any) -> Any:
    """Return a small figure of one entry of a legend: a piece of a line, or the colour of bars."""
    from matplotlib.container import BarContainer, ErrorbarContainer
    from matplotlib.figure import Figure

    figure = Figure(figsize=(0.5, 0.14))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set(xlim=(-0.05, 1.05), ylim=(-1, 1))
    if isinstance(handle, BarContainer):
        axes.axhspan(-1, 1, color=handle.patches[0].get_facecolor())
        return figure
    line = handle[0] if isinstance(handle, ErrorbarContainer) else handle
    axes.plot(
        [0, 0.5, 1],
        [0, 0, 0],
        color=line.get_color(),
        linestyle=line.get_linestyle(),
        linewidth=line.get_linewidth(),
        marker=line.get_marker(),
        markersize=min(line.get_markersize(), 6),
        markevery=[1],
    )
    return figure


def spread_widely(values: Sequence[float], axes: Any) -> None:
    """Make the y axis logarithmic if values differ by more than LOG_RATIO times: one tall bar would
    flatten all others. Values that are zero, or only rounding, stay below it."""
    seen = [value for value in values if value > _NOTHING]
    if not seen or max(seen) <= LOG_RATIO * min(seen):
        return
    axes.set_yscale("log")
    axes.set_ylim(min(seen) / 2, max(seen) * 2)
    plain_ticks(axes.yaxis)


def plain_ticks(axis: Any) -> None:
    """Put plain numbers on a logarithmic axis: at 1, 2, 5, 10, 20, ...; over a wide range only at
    powers of ten, over a narrow one at more."""
    from matplotlib.ticker import LogLocator, NullLocator

    low, high = axis.get_view_interval()
    ratio = high / low if low > 0 else 1.0
    subs = (1,) if ratio > 1e3 else (1, 2, 5) if ratio > 10 else (1, 1.5, 2, 3, 5, 7)
    axis.set_major_locator(LogLocator(subs=subs))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter("{x:g}")
