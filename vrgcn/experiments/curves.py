"""Drawing curves. Needs matplotlib, the extra `plots`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from vrgcn.training import Epoch

SUFFIXES = (".png", ".svg", ".pdf")


def check_figure(path: Path) -> None:
    """Refuse a figure that could not be drawn, before the hours of work that lead to it."""
    if path.suffix not in SUFFIXES:
        raise ValueError(f"--out: {path} must end in one of {', '.join(SUFFIXES)}")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ValueError("drawing needs matplotlib: pip install 'vrgcn[plots]'") from None


def draw_validation(
    curves: Mapping[str, Sequence[Epoch]], path: Path, title: str, score: str
) -> None:
    """Validation score of several runs, against epochs and against seconds of training."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    by_epoch, by_second = figure.subplots(1, 2, sharey=True)
    for name, curve in curves.items():
        points = [point for point in curve if point.val is not None]
        scores = [point.val for point in points]
        by_epoch.plot([point.epoch for point in points], scores, marker=".", label=name)
        by_second.plot([point.seconds for point in points], scores, marker=".", label=name)
    by_epoch.set(xlabel="epoch", ylabel=f"validation {score} (exact)")
    by_second.set(xlabel="seconds of training", xscale="log")
    for axes in (by_epoch, by_second):
        axes.grid(alpha=0.3)
    by_second.legend(loc="lower right")
    figure.suptitle(title)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
