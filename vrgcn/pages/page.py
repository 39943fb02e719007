"""A web page of results in one file: text, tables and figures, readable without a network."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from vrgcn.files.wording import encodable, printable, shortened
from vrgcn.files.writing import write_text

_STYLE = Path(__file__).with_name("page.css")


_LONGEST = 1000  # characters of a name or a caption
# Texts of verdicts; None if the claim could not be decided.
VERDICTS = {True: "holds", False: "does not hold", None: "not decided"}


class _Heading(NamedTuple):
    text: str
    level: int


class Page:
    """Parts are added from top to bottom; all text is escaped.

    page = Page("A run")
    page.heading("Scores")
    page.table(["", "test"], [["cora", "0.815"]])
    page.figure(figure, "Validation accuracy per epoch")
    page.write(Path("report.html"))

    contents: whether links to the headings of level 2 stand below the title
    """

    def __init__(self, title: str, *, contents: bool = False) -> None:
        self.title = title
        self.contents = contents
        self._parts: list[str | _Heading] = []

    def heading(self, text: str, level: int = 2) -> None:
        self._parts.append(_Heading(text, level))

    def text(self, text: str) -> None:
        self._parts.append(f"<p>{_escaped(text)}</p>")

    def code(self, text: str) -> None:
        self._parts.append(f"<pre>{_escaped(text)}</pre>")

    def note(self, text: str) -> None:
        """Add a note that the reader must not miss."""
        self._parts.append(f'<p class="verdict note">{_escaped(text)}</p>')

    @contextmanager
    def fold(self, summary: str) -> Iterator[None]:
        """Hide what is added inside until the reader opens it."""
        self._parts.append(f"<details><summary>{_name(summary)}</summary>")
        yield
        self._parts.append("</details>")

    def verdict(self, holds: bool | None, text: str) -> None:
        """Add a claim that was tested; None if it could not be decided."""
        kind = {True: "holds", False: "fails", None: "open"}[holds]
        self._parts.append(
            f'<p class="verdict {kind}"><strong>{VERDICTS[holds]}</strong>: {_escaped(text)}</p>'
        )

    def table(
        self,
        columns: Sequence[str],
        rows: Iterable[Sequence[str]],
        *,
        caption: str = "",
        marked: Iterable[tuple[int, int]] = (),
    ) -> None:
        """Add a table. marked: (row, column) of the cells to highlight"""
        marks = set(marked)
        head = "".join(f"<th>{_name(column)}</th>" for column in columns)
        body = []
        for i, row in enumerate(rows):
            cells = "".join(
                f'<td class="mark">{_name(cell)}</td>'
                if (i, j) in marks
                else f"<td>{_name(cell)}</td>"
                for j, cell in enumerate(row)
            )
            body.append(f"<tr>{cells}</tr>")
        # Outside of the table, which may be wider than the window and would scroll it away.
        title = f"<figcaption>{_name(caption)}</figcaption>" if caption else ""
        self._parts.append(
            f'<figure class="table">{title}<div class="scroll"><table>'
            f"<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table></div></figure>"
        )

    def matrix(
        self,
        names: Sequence[str],
        counts: Sequence[Sequence[int]],
        totals: Sequence[int],
        caption: str,
    ) -> None:
        """Add a confusion matrix: a row for each true class and a column for each predicted class;
        a cell is darker the larger its share of all nodes in the row's class (totals)."""
        names = [shortened(name, _LONGEST) for name in names]
        head = "".join(f"<th>{_name(name)}</th>" for name in ("true \\ predicted", *names))
        body = []
        for true, row, whole in zip(names, counts, totals, strict=True):
            total = max(whole, 1)
            cells = [
                _cell(f"{true}, predicted {name}", count, count / total)
                for name, count in zip(names, row, strict=True)
            ]
            body.append(f"<tr><td>{_name(true)}</td>{''.join(cells)}</tr>")
        self._parts.append(
            f'<figure class="table"><figcaption>{_name(caption)}</figcaption>'
            f'<div class="scroll"><table class="matrix"><thead><tr>{head}</tr></thead>'
            f"<tbody>{''.join(body)}</tbody></table></div></figure>"
        )

    def figure(self, figure: Any, caption: str) -> None:
        """Add a matplotlib figure, drawn into the page as SVG."""
        self._parts.append(_figure(figure, caption))

    def figures(self, figures: Iterable[tuple[Any, str]]) -> None:
        """Add figures with captions, side by side if the window is wide enough."""
        drawn = "".join(_figure(figure, caption) for figure, caption in figures)
        self._parts.append(f'<div class="figures">{drawn}</div>')

    def legend(self, entries: Iterable[tuple[str, Any]]) -> None:
        """Add a legend for all the figures that follow: names beside small matplotlib figures.
        Outside of the figures it covers nothing, and long names wrap."""
        items = "".join(
            f'<li><img alt="" src="{_source(line)}"><span>{_name(name)}</span></li>'
            for name, line in entries
        )
        self._parts.append(f'<ul class="legend">{items}</ul>')

    def append(self, other: Page) -> None:
        """Add the parts of another page below these."""
        self._parts += other._parts

    def html(self) -> str:
        title = _name(self.title)
        style = _STYLE.read_text(encoding="utf-8")
        parts, links = self._numbered()
        return "\n".join(
            [
                '<!doctype html><html lang="en"><head><meta charset="utf-8">',
                '<meta name="viewport" content="width=device-width, initial-scale=1">',
                f"<title>{title}</title><style>\n{style}</style></head><body><h1>{title}</h1>",
                *([f"<nav>{links}</nav>"] if links else []),
                *parts,
                "</body></html>\n",
            ]
        )

    def _numbered(self) -> tuple[list[str], str]:
        """Return the parts as HTML with anchors at the headings, and the links to them."""
        parts: list[str] = []
        links: list[str] = []
        for part in self._parts:
            if isinstance(part, str):
                parts.append(part)
                continue
            text, place = _name(part.text), ""
            if self.contents and part.level == 2:
                place = f' id="part-{len(links) + 1}"'
                links.append(f'<a href="#part-{len(links) + 1}">{text}</a>')
            parts.append(f"<h{part.level}{place}>{text}</h{part.level}>")
        return parts, "".join(links)

    def write(self, path: Path) -> None:
        """Write the page atomically: a page that is being read never loses its end."""
        write_text(path, encodable(self.html(), "utf-8"))  # a folder's name may be any bytes


def _escaped(text: str) -> str:
    """Return the text as HTML; characters that cannot be seen are written out."""
    return html.escape(printable(text, keep="\n\t"))


def _name(text: str) -> str:
    """Return a name as HTML, its beginning if it is very long: tables repeat names."""
    return _escaped(shortened(text, _LONGEST))


def _cell(text: str, count: int, share: float) -> str:
    """Return a cell of a matrix with a text that shows while the pointer is on it."""
    told = _escaped(f"{text}: {count:,} ({share:.1%})")
    colour = f"rgba(24,100,171,{0.75 * share:.2f})"
    return f'<td style="background:{colour}" title="{told}">{count:,}</td>'


def _figure(figure: Any, caption: str) -> str:
    text = _name(caption)
    image = f'<img alt="{text}" src="{_source(figure)}">'
    places = "".join(
        f'<i style="left:{spot.left:.2%};top:{spot.top:.2%}" title="{_name(spot.text)}"></i>'
        for spot in spots(figure)
    )
    return (
        f'<figure><div class="plot">{image}{places}</div><figcaption>{text}</figcaption></figure>'
    )


def _source(figure: Any) -> str:
    """Return the figure as a data address of an image, embedded in the page."""
    return f"data:image/svg+xml;base64,{base64.b64encode(svg(figure)).decode('ascii')}"


def svg(figure: Any) -> bytes:
    """Return the figure as SVG, the same bytes for the same figure."""
    from matplotlib import rc_context

    out = io.BytesIO()
    with rc_context({"svg.hashsalt": "vrgcn"}):
        figure.savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue()


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
