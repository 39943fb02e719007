"""The card of a search: what was tried, what was found, and where it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vrgcn.graph.graph import Graph
from vrgcn.runs.card import STANDARD_ERROR, code, facts_of, said, score_text, table, write_readme
from vrgcn.runs.folder import CARD
from vrgcn.tuning.standings import Standing

if TYPE_CHECKING:
    from vrgcn.tuning.finishing import Scores

_SHOWN = 10


def write_search_card(
    folder: Path,
    options: Mapping[str, Any],
    graph: Graph,
    rows: Sequence[Standing],
    kept: Mapping[str, Scores],
) -> None:
    """Write the card of a search that has finished.

    options: what config.toml of its runs says beside their settings
    rows: of the leaderboard
    kept: scores of the models that were kept in the end, by their folders
    """
    metric = next(iter(kept.values())).metric.title
    models = [
        (
            f"[{name}]({name}/{CARD})",
            score_text(metric, scores.val, scores.error),
            score_text(metric, scores.test),
        )
        for name, scores in kept.items()
    ]
    best = [
        (
            code(row.name),
            score_text(metric, row.val, row.error),
            f"{row.weight:.2f}" if row.weight else "–",
            code(row.settings) if row.settings else "",
        )
        for row in rows[:_SHOWN]
    ]
    sections = {
        "Scores": [
            *table(f"| model | validation {metric} | test {metric} |", models),
            *said((any(scores.error is not None for scores in kept.values()), STANDARD_ERROR)),
            "validation scores are of the best of many, and slightly too good; test scores were "
            "computed once, after every choice was made",
            "to predict, name the folder of a model; its card has the commands and the limits",
        ],
        "Leaderboard": [
            *table(f"| model | validation {metric} | weight in the average | |", best),
            "all of them are in `leaderboard.json`",
        ],
    }
    opening = f"A search among {len(rows)} models, by their validation scores."
    write_readme(folder, opening, "tune", options, facts_of(graph), sections)
