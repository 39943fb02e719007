"""The card of a search: what was tried, what was found, and where it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vrgcn.graph.graph import Graph
from vrgcn.runs.card import fenced, score_text, versions_text, write_readme
from vrgcn.runs.card_facts import code, facts_of, source_text, split_text
from vrgcn.runs.card_settings import command_text, flags_text
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
    config = as_written(options)
    facts = facts_of(graph)
    metric = next(iter(found.values())).metric.title
    sections = {
        "Data": [source_text(config), *facts.size],
        "Split": [split_text(config), *facts.split],
        "Scores": _scores(found, metric),
        "Leaderboard": _leaderboard(rows, metric),
        "How it was made": [*_command(folder), versions_text()],
        "How to predict": [
            "name the folder of a model; its card has the commands, its calibration and its limits"
        ],
    }
    opening = f"A search among {len(rows)} models, by their validation scores."
    write_readme(folder, f"Model card: {folder.resolve().name}", opening, sections)


def _scores(found: Mapping[str, Scores], metric: str) -> list[str]:
    rows = [
        f"| [{place}]({place}/{CARD}) | {_with_error(metric, scores.val, scores.error)} | "
        f"{score_text(metric, scores.test)} |"
        for place, scores in found.items()
    ]
    known = any(scores.error is not None for scores in found.values())
    error = "± is a standard error, by the jackknife over groups of validation nodes"
    return [
        *(f"| model | validation {metric} | test {metric} |", "|---|---|---|", *rows, ""),
        *([error] if known else []),
        "validation scores are of the best of many, and slightly too good; test scores were "
        "computed once, after every choice was made",
    ]


def _leaderboard(rows: Sequence[Standing], metric: str) -> list[str]:
    lines = [f"| model | validation {metric} | weight in the average | |", "|---|---|---|---|"]
    for row in rows[:_SHOWN]:
        weight = f"{row.weight:.2f}" if row.weight else "–"
        about = code(row.settings) if row.settings else ""
        val = _with_error(metric, row.val, row.error)
        lines.append(f"| {code(row.name)} | {val} | {weight} | {about} |")
    return [*lines, "", "all of them are in `leaderboard.json`"]


def _with_error(metric: str, score: float, error: float | None) -> str:
    text = score_text(metric, score)
    return text if error is None else f"{text} ± {score_text(metric, error)}"


def _command(folder: Path) -> list[str]:
    """Return the command of a search from the command line, or that it was made from Python."""
    if not (folder / CONFIG).is_file():
        return ["from Python, by `vrgcn.tune`"]
    config = read_config(folder)
    lengths = {name: config[name] for name in _LENGTHS if name in config}
    rest = {name: value for name, value in config.items() if name not in lengths}
    return [fenced([command_text("tune", rest, [flags_text(**lengths)])]), ""]
