"""Values to read off a picture: the places of its points and bars, and a text for each.

A picture on a page is an image without information about its points. So small invisible elements
lie over it, at shares of its width and height, each with a text that shows while the pointer is
there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

MOST = 400  # elements on a picture: more of them overlap


class Spot(NamedTuple):
    """One place on a picture with its text.

    left, top: shares of the picture's width and height, from 0 to 1
    """

    left: float
    top: float
    text: str


def spots(figure: Any) -> list[Spot]:
    """Return the points of lines and the tops of bars of a matplotlib figure, thinned to MOST."""
    figure.draw_without_rendering()  # positions are known only after this
    all_spots = [spot for axes in figure.axes for spot in _of_axes(axes)]
    every = -(-len(all_spots) // MOST)
    return all_spots[::every] if every > 1 else all_spots


def _of_axes(axes: Any) -> Iterator[Spot]:
    from matplotlib.container import BarContainer

    bars = [container for container in axes.containers if isinstance(container, BarContainer)]
    for container in bars:
        points = [(p.get_x() + p.get_width() / 2, p.get_height()) for p in container.patches]
        yield from _spots(axes, _label(container), points)
    for line in axes.lines:
        yield from _spots(axes, _label(line), line.get_xydata().tolist())


def _label(artist: Any) -> str:
    label = str(artist.get_label())
    return "" if label.startswith("_") else label  # matplotlib's own label of unnamed artists


def _spots(axes: Any, label: str, points: Sequence[tuple[float, float]]) -> Iterator[Spot]:
    across, up = axes.get_xlabel() or "", axes.get_ylabel() or ""
    for x, y in points:
        place = axes.transData.transform((x, y))
        left, top = axes.figure.transFigure.inverted().transform(place)
        inside = 0 <= left <= 1 and 0 <= top <= 1  # False for NaN
        if inside:
            names = [f"{label}, " if label else "", _at(axes, across, x), f"{up} {y:.4g}".strip()]
            yield Spot(float(left), 1 - float(top), f"{names[0]}{names[1]}: {names[2]}")


def _at(axes: Any, across: str, x: float) -> str:
    """Return a place on the axis as text: the name that stands there, or the value."""
    from matplotlib.ticker import FixedLocator

    if isinstance(axes.xaxis.get_major_locator(), FixedLocator):
        ticks = list(axes.get_xticks())
        nearest = min(range(len(ticks)), key=lambda n: abs(ticks[n] - x))
        return f"{across} {axes.get_xticklabels()[nearest].get_text()}".strip()
    return f"{across} {x:.4g}".strip()
