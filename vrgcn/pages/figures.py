"""Pictures of results. They need matplotlib, the extra `plots`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from vrgcn.files.wording import picture_text
from vrgcn.files.writing import FIGURES, check_out, new_file
from vrgcn.tasks.metrics import ClassScores
from vrgcn.tasks.reliability import Reliability
from vrgcn.training.result import check_drawing
from vrgcn.training.state import Epoch

MOST_POINTS = 10_000  # points of a cloud: more of them hide each other
MOST_CLASSES = 1_000  # classes in a picture: more of them are less than a dot each


def check_figure(path: Path, suffixes: Sequence[str] = FIGURES) -> None:
    """Raise if a figure could not be drawn, before the hours of work that lead to it.

    suffixes: endings of the files it can be written to; a page of figures has its own
    """
    check_out(path, suffixes)
    check_drawing()


def draw_validation(
    curves: Mapping[str, Sequence[Epoch]], path: Path, title: str, score: str
) -> None:
    """Draw the validation score of several runs, against epochs and against seconds of training."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    by_epoch, by_second = figure.subplots(1, 2, sharey=True)
    for name, curve in curves.items():
        points = [point for point in curve if point.val is not None]
        scores = [point.val for point in points]
        label = picture_text(name)
        by_epoch.plot([point.epoch for point in points], scores, marker=".", label=label)
        by_second.plot([point.seconds for point in points], scores, marker=".", label=label)
    by_epoch.set(xlabel="epoch", ylabel=f"validation {score} (exact)")
    by_second.set(xlabel="seconds of training", xscale="log")
    by_epoch.xaxis.get_major_locator().set_params(integer=True)
    for axes in (by_epoch, by_second):
        axes.grid(alpha=0.3)
    by_second.legend(loc="lower right")
    figure.suptitle(picture_text(title))
    save_figure(figure, path)


def confusion_figure(matrix: Tensor, classes: list[str], title: str) -> Any:
    """Return a figure of counts (classes, classes): rows are the true class, shares of the row.
    With many classes, only the largest are drawn."""
    from matplotlib.figure import Figure

    totals = matrix.sum(1)
    chosen, title = _largest(totals, title)
    matrix, totals, classes = (
        matrix[chosen][:, chosen],
        totals[chosen],
        [classes[i] for i in chosen],
    )
    size = min(max(4.0, 0.35 * len(classes) + 2), 16)
    figure = Figure(figsize=(size + 1, size), layout="constrained")
    axes = figure.subplots()
    shares = matrix / totals[:, None].clamp(min=1)
    image = axes.imshow(shares.numpy(), cmap="Blues", vmin=0, vmax=1)
    figure.colorbar(image, label="share of the true class", shrink=0.8)
    axes.set(xlabel="predicted class", ylabel="true class", title=picture_text(title))
    if len(classes) <= 60:
        names = [picture_text(name) for name in classes]
        axes.set_xticks(range(len(classes)), names, rotation=90)
        axes.set_yticks(range(len(classes)), names)
    if len(classes) <= 20:
        for row, counts in enumerate(matrix.tolist()):
            for column, count in enumerate(counts):
                if count:
                    colour = "white" if shares[row, column] > 0.5 else "black"
                    axes.text(column, row, str(count), ha="center", va="center", color=colour)
    return figure


def class_scores_figure(scores: ClassScores, classes: list[str], title: str) -> Any:
    """Return a figure of precision and recall of each class as bars, for nodes with several
    classes. With many classes, only the largest are drawn."""
    from matplotlib.figure import Figure

    chosen, title = _largest(scores.support, title)
    precision, recall = scores.precision[chosen], scores.recall[chosen]
    classes = [classes[i] for i in chosen]
    figure = Figure(figsize=(min(max(6.0, 0.3 * len(classes) + 2), 24), 4), layout="constrained")
    axes = figure.subplots()
    places = [float(index) for index in range(len(classes))]
    axes.bar([p - 0.2 for p in places], precision.nan_to_num().tolist(), 0.4, label="precision")
    axes.bar([p + 0.2 for p in places], recall.nan_to_num().tolist(), 0.4, label="recall")
    axes.set(ylim=(0, 1), title=picture_text(title), xlabel="class")
    if len(classes) <= 60:
        axes.set_xticks(places, [picture_text(name) for name in classes], rotation=90)
    axes.legend()
    return figure


def reliability_figure(held: Reliability, plain: Reliability, title: str) -> Any:
    """Return a figure of how often predictions are right against how sure they are, with and
    without the calibration."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.4, 5), layout="constrained")
    axes = figure.subplots()
    reliability_axes(axes, held, plain)
    axes.legend(loc="upper left")
    figure.suptitle(picture_text(title))
    return figure


def reliability_axes(axes: Any, held: Reliability, plain: Reliability) -> None:
    """Draw a reliability plot on axes: on the diagonal, probabilities are what they say.

    plain: without the calibration; the same as `held` if there is none
    """
    axes.plot([0, 1], [0, 1], color="black", linewidth=1)
    curves = [(plain, "before", "s--"), (held, "calibrated", "o-")]
    if plain is held:
        curves = [(held, "not calibrated", "o-")]
    for curve, label, style in curves:
        seen = curve.counts > 0
        axes.plot(
            curve.confidence[seen].tolist(),
            curve.accuracy[seen].tolist(),
            style,
            label=f"{label}, error {curve.error:.3f}",
        )
    axes.set(xlabel="predicted probability", ylabel="share that is right", xlim=(0, 1), ylim=(0, 1))
    axes.grid(alpha=0.3)


def predicted_figure(predicted: Tensor, actual: Tensor, title: str) -> Any:
    """Return a figure of numbers (nodes,) as points: predicted against actual, with the line where
    they are equal."""
    from matplotlib.figure import Figure

    if len(actual) > MOST_POINTS:
        chosen = torch.linspace(0, len(actual) - 1, MOST_POINTS, dtype=torch.float64).long()
        title += f", {MOST_POINTS:,} of {len(actual):,}"
        predicted, actual = predicted[chosen], actual[chosen]
    figure = Figure(figsize=(6, 6), layout="constrained")
    axes = figure.subplots()
    axes.scatter(actual.tolist(), predicted.tolist(), s=8, alpha=0.4, linewidths=0)
    axes.axline((float(actual.mean()), float(actual.mean())), slope=1, color="black", linewidth=1)
    axes.set(xlabel="actual", ylabel="predicted", title=picture_text(title))
    axes.grid(alpha=0.3)
    return figure


def _largest(sizes: Tensor, title: str) -> tuple[Tensor, str]:
    """Return the classes that fit into a picture, in their order, and its title then.

    sizes: (classes,) number of nodes of each
    """
    count = len(sizes)
    if count <= MOST_CLASSES:
        return torch.arange(count), title
    chosen = sizes.argsort(descending=True, stable=True)[:MOST_CLASSES].sort().values
    return chosen, f"{title}, the {MOST_CLASSES:,} largest of {count:,} classes"


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure; its file appears under its name when it is complete."""
    with new_file(path) as file:
        figure.savefig(file, dpi=150, format=path.suffix.removeprefix("."))
