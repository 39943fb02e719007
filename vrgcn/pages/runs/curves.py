"""Curves of several runs, one figure each: small enough to be read on a phone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vrgcn.files.wording import picture_text
from vrgcn.pages.page import Page
from vrgcn.pages.panels import INCHES, TEXT, plain_ticks, swatch
from vrgcn.pages.runs.records import RunRecord, by_metric
from vrgcn.tasks.metrics import titled_metric

# Colours that colour-blind readers can tell apart on white (Okabe and Ito's, brown for their
# yellow).
_COLOURS = (
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#222222", "#8c510a",
)  # fmt: skip
_DASHES = ("-", (0, (4, 1.5)), (0, (1, 1.2)), (0, (5, 1.5, 1, 1.5)))
_MARKERS = ("o", "s", "^", "D", "v")
_MARKS = 10  # markers on a curve: more of them hide it

_LOG_RATIO = 8.0  # values that differ by more are drawn on a logarithmic axis


@dataclass(frozen=True)
class Axis:
    """An axis of a figure.

    name: of the value in a point; label: of the axis; log: None if the values decide; most: the
        largest possible value
    """

    name: str
    label: str
    log: bool | None = None
    most: float | None = None


@dataclass(frozen=True)
class _Curves:
    """A figure: y of each run against x, and the text below it."""

    records: Sequence[RunRecord]
    x: Axis
    y: Axis
    text: str


EPOCHS = Axis("epoch", "epoch", log=False)
SECONDS = Axis("seconds", "seconds of training")
LOSS = Axis("loss", "training loss")
AGE = Axis("age", "mean age in steps", log=False)
STALENESS = {
    AGE: "Mean age of the histories after each epoch, in optimisation steps",
    Axis("staleness", "relative staleness"): "Relative staleness ‖h − h̄‖ / ‖h‖: how far the "
    "histories are from what would be written in their place",
    Axis("gradient_staleness", "relative staleness"): "Relative staleness of gradients ‖g − ḡ‖ / "
    "‖g‖, where they have a history",
    Axis(
        "common_staleness", "relative staleness"
    ): "Common part of the staleness: how far all rows "
    "of a table have moved together since they were written, of the table that is worst",
    Axis("gradient_common_staleness", "relative staleness"): "Common part of the staleness of "
    "gradients",
    Axis("halo_age", "mean age in steps", log=False): "Mean age of the copies that processes keep "
    "of each other's histories",
    Axis("halo_staleness", "relative staleness"): "Relative staleness of those copies "
    "‖original − copy‖ / ‖original‖: what training in parts adds",
    Axis("gradient_noise", "gradient noise"): "Noise of a minibatch's gradient from sampled "
    "neighbours and dropout: its variance over its squared mean",
}


def show_curves(page: Page, records: Sequence[RunRecord], styles: Mapping[str, int]) -> None:
    """Show training loss and validation score of runs on one graph, by epoch and by second."""
    figures = []
    for metric, alike in by_metric(records).items():
        score, text = _score_axis(metric), f"Validation {metric}"
        figures += [
            _Curves(alike, EPOCHS, score, f"{text} after each epoch, by exact prediction"),
            _Curves(
                alike, SECONDS, score, f"{text} by seconds of training, evaluation not counted"
            ),
        ]
    figures += [
        _Curves(records, EPOCHS, LOSS, "Mean training loss of each epoch"),
        _Curves(records, SECONDS, LOSS, "Training loss by seconds of training"),
    ]
    _show(page, figures, styles)
    missing = [record.label for record in records if record.best is None]
    if missing:
        page.text(f"Without a validation score: {', '.join(missing)}.")


def show_staleness(page: Page, records: Sequence[RunRecord], styles: Mapping[str, int]) -> None:
    """Show the age of the histories, and the other measurements of staleness."""
    if not any(_present(records, axis) for axis in STALENESS):
        page.text("These runs keep no histories.")
        return
    _show(page, [_Curves(records, EPOCHS, *axis) for axis in STALENESS.items()], styles)
    missing = [record.label for record in records if not record.curve("epoch", "age")[1]]
    if missing:
        page.text(f"Without histories: {', '.join(missing)}.")


def _present(records: Sequence[RunRecord], axis: Axis) -> bool:
    return any(record.curve("epoch", axis.name)[1] for record in records)


def _score_axis(metric: str) -> Axis:
    """Return the axis of the score. Shares end at 1; errors have no limit and may get a logarithmic
    axis. The same holds for a score without a known name, because it may be an error."""
    known = titled_metric(metric)
    error = known is None or known.error
    label = f"validation {metric}"
    return Axis("val", label) if error else Axis("val", label, log=False, most=1.0)


def _show(page: Page, figures: Sequence[_Curves], styles: Mapping[str, int]) -> None:
    """Show a legend and the figures for which there are values.

    styles: a number for the look of each label, the same all over the page
    """
    shown = [curves for curves in figures if _present(curves.records, curves.y)]
    drawn = {r.label for curves in shown for r in curves.records if _present([r], curves.y)}
    if len(styles) > 1:
        page.legend((label, _swatch(style)) for label, style in styles.items() if label in drawn)
    page.figures((draw(c.records, c.x, c.y, styles), c.text) for c in shown)


def draw(records: Sequence[RunRecord], x: Axis, y: Axis, styles: Mapping[str, int]) -> Any:
    """Draw a figure with a curve for each run that has values for it."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    with rc_context(TEXT):
        figure = Figure(figsize=INCHES)
        axes = figure.subplots()
        curves = {record.label: record.curve(x.name, y.name) for record in records}
        curves = {label: curve for label, curve in curves.items() if curve[0]}
        for label, (across, up) in curves.items():
            axes.plot(across, up, label=label, **_look(styles[label], len(across)))
        axes.set(xlabel=picture_text(x.label), ylabel=picture_text(y.label))
        if y.most is not None:
            bottom, top = axes.get_ylim()
            axes.set_ylim(top=min(top, y.most + 0.03 * (y.most - bottom)))
        if _logarithmic(x, [across[-1] for across, _ in curves.values()]):
            axes.set_xscale("log")
            plain_ticks(axes.xaxis)
        elif x is EPOCHS:
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        if _logarithmic(y, [value for _, up in curves.values() for value in up]):
            axes.set_yscale("log")
            plain_ticks(axes.yaxis)
    return figure


def _logarithmic(axis: Axis, values: Sequence[float]) -> bool:
    if axis.log is not None:
        return axis.log
    return bool(values) and min(values) > 0 and max(values) > _LOG_RATIO * min(values)


def _look(style: int, points: int) -> dict[str, Any]:
    """Return colour, dashes and marker of the curve: no two are alike below 160."""
    every = max(1, points // _MARKS)
    return {
        "color": _COLOURS[style % len(_COLOURS)],
        "linestyle": _DASHES[style // len(_COLOURS) % len(_DASHES)],
        "marker": _MARKERS[style % len(_MARKERS)],
        "markersize": 4.5,
        "markevery": (style % every, every),  # curves that coincide show their own markers
        "linewidth": 1.8,
    }


def _swatch(style: int) -> Any:
    """Draw a piece of the curve, for the legend."""
    from matplotlib.lines import Line2D

    return swatch(Line2D([], [], **_look(style, 1)))
