"""The card of a folder that holds several runs: of one training with several seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from vrgcn.files.parsing import read_json
from vrgcn.runs.card import fenced, score_text, versions_text, write_readme
from vrgcn.runs.card_facts import Facts, source_text, split_text
from vrgcn.runs.card_settings import command_text, flags_text, settings_table
from vrgcn.runs.config_file import as_written
from vrgcn.runs.folder import CARD, RESULT, member_runs
from vrgcn.training.wording import deviation


def write_seeds_card(folder: Path, config: Mapping[str, Any], facts: Facts) -> None:
    """Write the card of runs that differ only in their seed: each score, and mean and deviation.

    config: of all of them, as it is written to config.toml
    """
    config = as_written(config)
    runs = {run.name: read_json(run / RESULT) for run in member_runs(folder)}
    metric = next(iter(runs.values()))["metric"]
    rows = [_row(metric, f"[{run}]({run}/{CARD})", [result]) for run, result in runs.items()]
    mean = _row(metric, "mean ± standard deviation", list(runs.values()))
    sections = {
        "Data": [source_text(config), *facts.size],
        "Split": [split_text(config), *facts.split],
        "Scores": [
            *(f"| run | validation {metric} | test {metric} |", "|---|---|---|", *rows, mean),
            "",
            "runs differ in the seed of weights and minibatches; the split is the same, so the "
            "deviation says nothing about other splits",
        ],
        "Settings": settings_table(config),
        "How they were made": [
            fenced([command_text("train", config, [flags_text(seeds=config["seeds"])])]),
            "",
            versions_text(),
        ],
        "How to predict": [
            "name one of the runs; its card has the commands, its calibration and its limits"
        ],
    }
    title = f"Model card: {folder.resolve().name}"
    write_readme(folder, title, f"{len(runs)} runs with different seeds.", sections)


def _row(metric: str, title: str, results: Sequence[Mapping[str, Any]]) -> str:
    cells = []
    for split in ("val", "test"):
        scores = [result[split] for result in results if result[split] is not None]
        text = score_text(metric, fmean(scores) if scores else None)
        spread = deviation(scores)
        cells.append(text if spread is None else f"{text} ± {score_text(metric, spread)}")
    return f"| {title} | {' | '.join(cells)} |"
