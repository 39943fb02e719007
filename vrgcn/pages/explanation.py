"""Explanations of predictions: tables, a picture, a page, a file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from vrgcn.engine.devices import use_threads
from vrgcn.files.settings import at_least
from vrgcn.files.wording import picture_text, printable
from vrgcn.files.writing import ENDINGS, PAGES, check_out, new_file, write_text
from vrgcn.live.explaining import Effects, Explanation
from vrgcn.pages.page import Page
from vrgcn.pages.terminal import print_table, text_table
from vrgcn.runs.run import Run, load_run
from vrgcn.training.result import check_drawing

_SHOWN = 12  # bars of each sort in a picture
_MORE, _LESS = "#c92a2a", "#1864ab"


def sorts(explanation: Explanation) -> list[tuple[str, Effects]]:
    """The sorts of things that were left out, those that the node has."""
    named = [
        ("edge", explanation.edges),
        ("neighbour", explanation.neighbours),
        ("column", explanation.columns),
    ]
    return [(name, effects) for name, effects in named if effects.looked_at]


def rows(effects: Effects, top: int) -> list[list[str]]:
    """A row for each of the largest effects: what, without it, change."""
    return [
        [effect.what, f"{effect.without:.4g}", f"{effect.change:+.4g}"]
        for effect in effects.effects[:top]
    ]


def summary(name: str, effects: Effects) -> str:
    """A sentence: the sum of single effects beside that of leaving everything out."""
    plural = name if effects.looked_at == 1 else f"{name}s"
    counted = f"{effects.looked_at} {plural}"
    if effects.looked_at < effects.there:
        counted = f"{effects.looked_at} of {effects.there} {name}s, those that weigh most,"
    return (
        f"{counted} left out one by one: sum of the changes {effects.total:+.4g}; all of them at "
        f"once: {effects.together:+.4g}"
    )


def print_explanation(explanation: Explanation, top: int) -> None:
    """Print a table of each sort. top: rows of each"""
    print(printable(explanation.title))
    if explanation.note:
        print(f"({explanation.note})")
    for name, effects in sorts(explanation):
        headings = [name, "without it", "change"]
        print_table(text_table(f"without one {name}", headings, rows(effects, top)))
        print(f"{summary(name, effects)}\n")
    if not sorts(explanation):
        print("it has no edges, and its columns hold their means: there is nothing to leave out\n")


def explain(
    run: Run | str | Path,
    nodes: Any,
    *,
    of: str | None = None,
    most: int = 30,
    memory: Literal["ram", "disk"] = "ram",
    device: str = "cpu",
    threads: int | None = None,
    out: str | Path | None = None,
    top: int = 10,
) -> list[Explanation]:
    """Explain the predictions of some nodes, as `vrgcn explain` does.

    run: a run or its folder
    nodes: an id, or several
    of: kind of the nodes, in a graph of several kinds; None: the kind that has labels
    most: how many edges, neighbours and columns are left out, one by one
    memory, device, threads: of the computation; "disk" for tables larger than memory
    out: file to write, .html, .json or a picture; top: rows of each of its tables
    """
    use_threads(threads)
    at_least(1, top=top, most=most)
    path = None if out is None else Path(out)
    if path is not None:
        check_out(path, ENDINGS)
    opened = run if isinstance(run, Run) else load_run(run, device)
    explanations = opened.explain(nodes, of, most=most, memory=memory)
    if path is not None:
        write_explanations(explanations, path, top)
    return explanations


def write_explanations(explanations: Sequence[Explanation], path: Path, top: int) -> None:
    """Write explanations to a page, a picture or JSON, as the ending says."""
    if path.suffix == ".json":
        dicts = [explanation.to_dict() for explanation in explanations]
        write_text(path, json.dumps(dicts, indent=2) + "\n")
        return
    check_drawing()
    if path.suffix in PAGES:
        explanation_page(explanations, top).write(path)
        return
    figure = draw_effects(explanations)
    with new_file(path) as file:
        figure.savefig(file, dpi=150, format=path.suffix.removeprefix("."))


def explanation_page(explanations: Sequence[Explanation], top: int) -> Page:
    """A page with a picture and tables of each node."""
    page = Page("Explanations", contents=len(explanations) > 1)
    for explanation in explanations:
        page.heading(explanation.title)
        if explanation.note:
            page.note(explanation.note)
        if not sorts(explanation):
            page.text("It has no edges, and its columns hold their means.")
            continue
        page.figure(
            draw_effects([explanation]),
            "Change of the prediction when one thing is left out; below zero: it speaks for the "
            "prediction",
        )
        for name, effects in sorts(explanation):
            page.table([name, "without it", "change"], rows(effects, top))
            page.text(summary(name, effects))
    return page


def draw_effects(explanations: Sequence[Explanation]) -> Any:
    """Bars of the largest effects: a row of pictures for each node, a picture for each sort."""
    from matplotlib.figure import Figure

    tallest = [
        max((min(len(e.effects), _SHOWN) for _, e in sorts(x)), default=1) for x in explanations
    ]
    height = sum(0.32 * most + 1.1 for most in tallest)
    figure = Figure(figsize=(11, max(height, 2.2)), layout="constrained")
    grid = figure.subplots(
        len(explanations), 3, squeeze=False, height_ratios=[most + 2 for most in tallest]
    )
    for axes, explanation in zip(grid, explanations, strict=True):
        named = sorts(explanation)
        for index, one in enumerate(axes):
            if index >= len(named):
                one.set_visible(False)
                continue
            name, effects = named[index]
            shown = effects.effects[:_SHOWN][::-1]
            places = range(len(shown))
            colours = [_LESS if effect.change < 0 else _MORE for effect in shown]
            one.barh(places, [effect.change for effect in shown], color=colours)
            one.set_yticks(places, [_short(effect.what) for effect in shown])
            one.axvline(0, color="#1c2733", linewidth=0.8)
            one.set_xlabel(f"change without one {name}")
            one.margins(x=0.08)
        axes[0].set_title(picture_text(explanation.title), loc="left", fontsize=10)
    return figure


def _short(text: str) -> str:
    return picture_text(text if len(text) <= 24 else f"{text[:22]}…")
