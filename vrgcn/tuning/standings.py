"""The leaderboard at the end of a search: every kept model, and their average."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table

from vrgcn.baselines import RECIPES
from vrgcn.pages.terminal import text_table
from vrgcn.tasks.metrics import Metric
from vrgcn.tuning.leaderboard import SHOWN, changes_text, ranked
from vrgcn.tuning.study import Tried

AVERAGE = "average"


@dataclass(frozen=True)
class Standing:
    """A row of the leaderboard.

    kind: baseline, network or average
    val, error: validation score and its standard error
    epochs, planned: how many were trained, and how many it would have been; 0 where there are none
    weight: in the average; gain: over the best baseline, None if there is none
    settings: in words; of a network what it has else than trial 0, of a baseline what it is
    """

    name: str
    kind: str
    val: float
    error: float | None
    seconds: float
    epochs: int
    planned: int
    weight: float
    gain: float | None
    settings: str


def standings(
    members: Sequence[tuple[Tried, float | None, float]],
    average: tuple[float, float | None] | None,
    metric: Metric,
    planned: int,
) -> list[Standing]:
    """Rows of the leaderboard, best first, the average last, if there is one.

    members: each with the standard error of its score and its weight in the average
    average: its score and standard error
    planned: epochs of a trial that is not cut short
    """
    known = {tried.name: (error, weight) for tried, error, weight in members}
    order = ranked([tried for tried, *_ in members], metric.better)
    first = next((tried.val for tried in order if tried.baseline is not None), None)

    def gain(val: float) -> float | None:
        return None if first is None else (first - val if metric.error else val - first)

    rows = []
    for tried in order:
        assert tried.val is not None
        network = tried.baseline is None
        rows.append(
            Standing(
                tried.name,
                "network" if network else "baseline",
                tried.val,
                known[tried.name][0],
                tried.seconds,
                tried.epochs,
                planned if network else 0,
                known[tried.name][1],
                gain(tried.val),
                changes_text(tried, order) if network else _words(tried, average is None),
            )
        )
    if average is None:
        return rows
    seconds = sum(row.seconds for row in rows if row.weight)
    val, error = average
    return [*rows, Standing(AVERAGE, AVERAGE, val, error, seconds, 0, 0, 1.0, gain(val), "")]


def _words(tried: Tried, of_pairs: bool) -> str:
    """Describe a baseline."""
    if of_pairs:
        return "a simple rule on training pairs"
    recipe = RECIPES.get(tried.baseline or "")
    return "an estimator of scikit-learn" if recipe is None else recipe.words


def standings_table(rows: Sequence[Standing], metric: Metric, title: str) -> Table:
    """The best rows, and the average."""
    members = [row for row in rows if row.kind != AVERAGE]
    averages = [row for row in rows if row.kind == AVERAGE]
    headings = ["model", "kind", metric.title, "±", "gain", "weight", "epochs", "s", "settings"]
    shown = (*members[:SHOWN], *averages)
    return text_table(title, headings, [_texts(row, metric) for row in shown])


def _texts(row: Standing, metric: Metric) -> list[str]:
    def short(value: float | None) -> str:
        return "–" if value is None else metric.text(value)

    return [
        row.name,
        row.kind,
        metric.text(row.val),
        short(row.error),
        short(row.gain),
        f"{row.weight:.2f}" if row.weight else "–",
        f"{row.epochs}/{row.planned}" if row.planned else "–",
        f"{row.seconds:.1f}",
        row.settings,
    ]
