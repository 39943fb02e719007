"""The picture of the league: how far each competitor is from the best baseline of each graph."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from lab.harness.records import Record
from lab.league.scores import NETWORKS, Scores
from lab.league.table import SPLITS

LEFT, LEAST = -8.0, -3.0  # points: rows further behind are left out; the axis begins no later
RIGHT = 8.0  # points: rows further ahead are drawn here, with their points beside them
# Kinds of rows as they are drawn: marker, colour, size, words of the legend.
STYLES = {
    "baseline": ("o", "0.65", 22, "simple baselines"),
    "network": ("o", "tab:cyan", 22, "single networks, other settings"),
    "default": ("D", "tab:blue", 48, "vrgcn train, by default"),
    "tune": ("*", "tab:red", 130, "vrgcn tune"),
}


def draw(records: Sequence[Record], file: Path) -> None:
    """Draw, for each graph, every competitor's points above the best baseline."""
    import matplotlib.pyplot as plt

    scores = Scores(records, SPLITS)
    graphs = [graph for graph in scores.graphs if scores.best(graph, ("baseline",))]
    figure, axes = plt.subplots(figsize=(8, 0.42 * len(graphs) + 1.4), layout="constrained")
    furthest = LEAST
    for place, graph in enumerate(graphs):
        best = scores.best(graph, ("baseline",))
        assert best is not None
        for row in scores.rows:
            style = _style(scores.kind(row))
            difference = scores.difference(row, best, graph)
            if style is None or difference is None or difference.mean < LEFT:
                continue
            furthest = min(furthest, difference.mean)
            marker, colour, size, _ = STYLES[style]
            front = list(STYLES).index(style)
            shown = min(difference.mean, RIGHT)
            if difference.mean > RIGHT:
                words = f"{difference.mean:+.0f}"
                axes.annotate(words, (shown, place), (8, -4), textcoords="offset points")
            axes.scatter(
                shown, place, size, colour,
                marker=marker, zorder=3 + front, linewidths=0, alpha=1 if front > 1 else 0.7,
            )  # fmt: skip
            if front > 1 and difference.mean <= RIGHT and not math.isnan(difference.error):
                axes.errorbar(
                    difference.mean, place, xerr=difference.error,
                    color=colour, linewidth=1.2, zorder=2 + front,
                )  # fmt: skip
    axes.axvline(0, color="black", linewidth=0.8, zorder=1)
    axes.set_yticks(range(len(graphs)), graphs)
    axes.set_ylim(len(graphs) - 0.5, -0.5)
    axes.set_xlim(left=furthest - 0.5)
    axes.grid(axis="x", color="0.9", zorder=0)
    axes.set_axisbelow(True)
    axes.set_xlabel(
        f"test score, points above the best simple baseline (more than {-LEFT:g} below: not drawn)"
    )
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    handles = [
        axes.scatter([], [], size, colour, marker=marker, label=words, linewidths=0)
        for marker, colour, size, words in STYLES.values()
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=4, frameon=False, fontsize=9)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=130)
    plt.close(figure)


def _style(kind: str) -> str | None:
    """Return the style of a kind of row; None for rows that are not drawn."""
    if kind in STYLES:
        return kind
    return "network" if kind in NETWORKS else None
