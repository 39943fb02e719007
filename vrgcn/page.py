"""A web page of results in one file: text, tables and figures, readable without a network."""

from __future__ import annotations

import base64
import html
import io
import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

_STYLE = """
:root { color-scheme: light }
body { font: 16px/1.5 system-ui, sans-serif; color: #1c2733; max-width: 68rem; margin: 0 auto;
  padding: 1rem 1.25rem 4rem }
h1 { font-size: 1.7rem; line-height: 1.2 }
h2 { font-size: 1.25rem; margin-top: 2.5rem; border-bottom: 1px solid #d5dce3 }
h3 { font-size: 1.05rem }
.scroll { overflow-x: auto }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums }
caption { text-align: left; color: #52606d; padding-bottom: .3rem }
th, td { padding: .25rem .7rem; text-align: right; border-bottom: 1px solid #e4e9ee }
th { white-space: nowrap; vertical-align: bottom }
th:first-child, td:first-child { text-align: left }
td.mark { background: #fff3bf }
figure { margin: 1rem 0 }
figure img { max-width: 100%; height: auto }
figcaption { color: #52606d; font-size: .9rem }
.verdict { padding: .4rem .8rem; border-left: 4px solid; margin: .4rem 0 }
.holds { border-color: #2b8a3e; background: #ebfbee }
.fails { border-color: #c92a2a; background: #fff0f0 }
.open { border-color: #868e96; background: #f1f3f5 }
pre { overflow-x: auto; background: #f4f6f8; padding: .6rem .8rem; font-size: .85rem }
"""


# What a verdict says; None where it could not be decided.
VERDICTS = {True: "holds", False: "does not hold", None: "not decided"}


class Page:
    """Parts are added from top to bottom; all text is escaped.

    page = Page("A run")
    page.heading("Scores")
    page.table(["", "test"], [["cora", "0.815"]])
    page.figure(figure, "Validation accuracy per epoch")
    page.write(Path("report.html"))
    """

    def __init__(self, title: str) -> None:
        self.title = title
        self._parts: list[str] = []

    def heading(self, text: str, level: int = 2) -> None:
        self._parts.append(f"<h{level}>{html.escape(text)}</h{level}>")

    def text(self, text: str) -> None:
        self._parts.append(f"<p>{html.escape(text)}</p>")

    def code(self, text: str) -> None:
        self._parts.append(f"<pre>{html.escape(text)}</pre>")

    def verdict(self, holds: bool | None, text: str) -> None:
        """A claim that was put to a test; None where it could not be decided."""
        kind = {True: "holds", False: "fails", None: "open"}[holds]
        self._parts.append(
            f'<p class="verdict {kind}"><strong>{VERDICTS[holds]}</strong>: {html.escape(text)}</p>'
        )

    def table(
        self,
        columns: Sequence[str],
        rows: Iterable[Sequence[str]],
        *,
        caption: str = "",
        marked: Iterable[tuple[int, int]] = (),
    ) -> None:
        """marked: (row, column) of the cells to stand out."""
        marks = set(marked)
        head = "".join(f"<th>{html.escape(column)}</th>" for column in columns)
        body = []
        for i, row in enumerate(rows):
            cells = "".join(
                f'<td class="mark">{html.escape(cell)}</td>'
                if (i, j) in marks
                else f"<td>{html.escape(cell)}</td>"
                for j, cell in enumerate(row)
            )
            body.append(f"<tr>{cells}</tr>")
        title = f"<caption>{html.escape(caption)}</caption>" if caption else ""
        self._parts.append(
            f'<div class="scroll"><table>{title}<thead><tr>{head}</tr></thead>'
            f"<tbody>{''.join(body)}</tbody></table></div>"
        )

    def figure(self, figure: Any, caption: str) -> None:
        """A matplotlib figure, drawn into the page as SVG."""
        drawn = base64.b64encode(svg(figure)).decode("ascii")
        text = html.escape(caption)
        self._parts.append(
            f'<figure><img alt="{text}" src="data:image/svg+xml;base64,{drawn}">'
            f"<figcaption>{text}</figcaption></figure>"
        )

    def append(self, other: Page) -> None:
        """The parts of another page, below these."""
        self._parts += other._parts

    def html(self) -> str:
        title = html.escape(self.title)
        return "\n".join(
            [
                '<!doctype html><html lang="en"><head><meta charset="utf-8">',
                '<meta name="viewport" content="width=device-width, initial-scale=1">',
                f"<title>{title}</title><style>{_STYLE}</style></head><body><h1>{title}</h1>",
                *self._parts,
                "</body></html>\n",
            ]
        )

    def write(self, path: Path) -> None:
        """Whole or not at all: a page that is being read never loses its end."""
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, suffix=".html")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(self.html())
            os.chmod(name, 0o644)
            os.replace(name, path)
        except BaseException:
            os.unlink(name)
            raise


def svg(figure: Any) -> bytes:
    """The figure as SVG, the same bytes for the same figure."""
    from matplotlib import rc_context

    out = io.BytesIO()
    with rc_context({"svg.hashsalt": "vrgcn"}):
        figure.savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue()
