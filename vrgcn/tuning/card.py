"""The card of a search: what was tried, what was found, and where it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vrgcn.graph.graph import Graph
from vrgcn.runs.card_facts import code, facts_of
from vrgcn.runs.card_settings import (
    STANDARD_ERROR,
    VERSIONS,
    made_by,
    said,
    score_text,
    table,
    write_readme,
)
from vrgcn.runs.config_file import as_written
from vrgcn.runs.folder import CARD, CONFIG, read_config
from vrgcn.tuning.finishing import Scores
from vrgcn.tuning.standings import Standing

_SHOWN = 10
_LENGTHS = ("trials", "time_limit")


def write_search_card(
    folder: Path,
    options: Mapping[str, Any],
    graph: Graph,
    rows: Sequence[Standing],
    found: Mapping[str, Scores],
) -> None:
    """Write the card of a search that has finished.

    options: what config.toml of its runs says beside their settings
    rows: of the leaderboard
    found: scores of the models that were kept in the end, by their folders
    """
    metric = next(iter(found.values())).metric.title
    sections = {
        "Scores": _scores(found, metric),
        "Leaderboard": _leaderboard(rows, metric),
        "How it was made": _made(folder),
        "How to predict": [
            "name the folder of a model; its card has the commands, its calibration and its limits"
        ],
    }
    opening = f"A search among {len(rows)} models, by their validation scores."
    write_readme(folder, opening, as_written(options), facts_of(graph), sections)


def _scores(found: Mapping[str, Scores], metric: str) -> list[str]:
    rows = [
        (
            f"[{place}]({place}/{CARD})",
            score_text(metric, scores.val, scores.error),
            score_text(metric, scores.test),
        )
        for place, scores in found.items()
    ]
    return [
        *table(f"| model | validation {metric} | test {metric} |", rows),
        *said((any(scores.error is not None for scores in found.values()), STANDARD_ERROR)),
        "validation scores are of the best of many, and slightly too good; test scores were "
        "computed once, after every choice was made",
    ]


def _leaderboard(rows: Sequence[Standing], metric: str) -> list[str]:
    lines = [
        (
            code(row.name),
            score_text(metric, row.val, row.error),
            f"{row.weight:.2f}" if row.weight else "–",
            code(row.settings) if row.settings else "",
        )
        for row in rows[:_SHOWN]
    ]
    head = f"| model | validation {metric} | weight in the average | |"
    return [*table(head, lines), "all of them are in `leaderboard.json`"]


def _made(folder: Path) -> list[str]:
    """Return the command of a search from the command line, or that it was made from Python."""
    if not (folder / CONFIG).is_file():
        return ["from Python, by `vrgcn.tune`", VERSIONS]
    config = read_config(folder)
    lengths = {name: config.pop(name) for name in _LENGTHS if name in config}
    return made_by("tune", config, **lengths)
