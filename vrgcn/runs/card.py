"""The card of a run: README.md in its folder, which says to a stranger what the model is.

Data, split, scores, calibration, settings, the command, versions, limits, and how to predict. A
card is written before the result, so that a finished run has one, and says nothing that depends on
time: a run that was stopped and resumed ends with the same card. Commands in it are for the folder
above, so that they are right after a move. A README.md of the user's own is left as it is.
"""

from __future__ import annotations

import math
import platform
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from vrgcn import __version__
from vrgcn.data.tables.wording import counted
from vrgcn.files.printable import printable
from vrgcn.files.writing import write_text
from vrgcn.inference.average import Average
from vrgcn.inference.calibration import NOT_BETTER
from vrgcn.inference.saved import SavedModel
from vrgcn.models.node_table import node_tables
from vrgcn.pairs.model import PairModel
from vrgcn.runs.card_facts import Facts, code, listed, source_text, split_text
from vrgcn.runs.card_settings import command_text, flags_text, settings_table
from vrgcn.runs.config_file import as_written
from vrgcn.runs.folder import BASELINES, CARD, CARD_MARK, STUDY, TRIALS, is_card
from vrgcn.tasks import find_task
from vrgcn.tasks.metrics import titled_metric

FENCE = "```"


@dataclass(frozen=True)
class Scored:
    """Scores of a model, as its result.json has them.

    error: standard error of the validation score; None where it is not known
    """

    metric: str
    val: float | None
    test: float | None
    epoch: int = 0
    error: float | None = None
    unsmoothed: float | None = None


def write_card(
    folder: Path, config: Mapping[str, Any], scored: Scored, saved: SavedModel, facts: Facts
) -> None:
    """Write the card of a run.

    config: its settings by name, as they are written to config.toml
    """
    config = as_written(config)
    sections = {
        "Data": [f"{source_text(config)}", *facts.size],
        "Split": [split_text(config), *facts.split],
        "Scores": _scores(scored, saved, facts),
        "Calibration": _calibration(saved),
        "Model": _model(saved, config),
        "Settings": [] if {"baseline", "average"} & config.keys() else settings_table(config),
        "How it was made": _made(folder, config),
        "Intended use and limits": _limits(scored, saved),
        "How to predict": _usage(folder.resolve().name, saved),
    }
    write_readme(folder, f"Model card: {folder.resolve().name}", _title(saved), sections)


def write_readme(
    folder: Path, title: str, opening: str, sections: Mapping[str, Sequence[str]]
) -> None:
    """Write README.md of a folder of ours, all of it or nothing, unless the user wrote it.

    sections: by heading, the lines of a list, of a table or of code
    """
    file = folder / CARD
    if file.exists() and not is_card(file):
        return
    parts = [f"{CARD_MARK}\n# {_line(title)}", _line(opening)]
    for heading, lines in sections.items():
        if lines:
            parts.append(f"## {heading}\n\n" + "\n".join(map(_item, lines)))
    text = "\n\n".join(parts) + "\n"
    write_text(file, printable(text, keep="\n"))  # names of folders may hold any bytes


def versions_text() -> str:
    """Return the versions that a model was made by."""
    return f"vrgcn {__version__}, PyTorch {torch.__version__}, Python {platform.python_version()}"


def score_text(metric: str, score: float | None) -> str:
    """Format a score of a metric with this title."""
    known = titled_metric(metric)
    if score is None:
        return "–"
    return f"{score:.4f}" if known is None else known.text(score)


def _item(line: str) -> str:
    """Return a line of a section: of a table or of code as it is, any other as an item."""
    plain = not line or line.startswith(("|", FENCE))
    return line if plain else f"- {_line(line)}"


def fenced(commands: Sequence[str]) -> str:
    """Return commands as a block of code in Markdown."""
    return "\n".join([f"{FENCE}sh", *commands, FENCE])


def _line(text: str) -> str:
    return " ".join(text.split())


def _title(saved: SavedModel) -> str:
    return f"Predicts {predicted_text(saved)}. Trained by vrgcn {__version__}."


def predicted_text(saved: SavedModel) -> str:
    """Return what a model predicts, in words."""
    if isinstance(saved.model, PairModel):
        told = saved.model.arguments
        if told["directions"] is not None:
            return "edges of all relations"
        if told.get("values") is not None:
            return f"a value of each pair of the relation {code(told['relation'])}"
        return f"which nodes are linked, by the relation {code(told['relation'])}"
    task = find_task(saved.task)
    if not task.has_classes:
        return task.label
    names = saved.classes or range(saved.num_classes or 0)
    return f"{task.label}, of {len(names):,}: {listed(list(names))}"


def _scores(scored: Scored, saved: SavedModel, facts: Facts) -> list[str]:
    metric = scored.metric
    error = "" if scored.error is None else f" ± {score_text(metric, scored.error)}"
    test = "not scored" if scored.test is None else score_text(metric, scored.test)
    lines = [
        f"| | {metric} |",
        "|---|---|",
        f"| validation | {score_text(metric, scored.val)}{error} |",
        f"| test | {test} |",
        "",
    ]
    if scored.error is not None:
        lines.append("± is a standard error, by the jackknife over groups of validation nodes")
    if scored.unsmoothed is not None:
        before = score_text(metric, scored.unsmoothed)
        lines.append(f"validation before Correct & Smooth: {before}")
    if scored.epoch:
        lines.append(f"the weights are those of epoch {scored.epoch}")
    lines.append(
        "the validation score is slightly too good: it chose the epoch or the model"
        if scored.val is not None
        else "there was no validation: nothing was chosen by it"
    )
    if scored.test is None:
        lines.append("the test was not scored: nothing here can have been chosen by it")
    return lines


def _calibration(saved: SavedModel) -> list[str]:
    found = saved.calibration
    if isinstance(saved.model, PairModel):
        return ["none: scores of pairs rank, and are no probabilities"]
    if found is None:
        return ["none: take the probabilities as ranks, not as chances"]
    lines = [f"on {counted(found.fitted, 'validation node')}"]
    if find_task(saved.task).has_classes and found.temperature == 1:
        lines.append(f"probabilities are those of the model: {NOT_BETTER}")
    elif find_task(saved.task).has_classes:
        lines.append(f"temperature {found.temperature:.4g}: outputs are divided by it")
    if found.threshold is not None:
        classes = saved.classes or ["0", "1"]
        lines.append(f"class {code(classes[1])} from a probability of {found.threshold:.4g} on")
    if len(found.scores):
        most = len(found.scores) / (len(found.scores) + 1)
        lines.append(
            f"prediction sets or intervals for coverages up to {math.floor(1000 * most) / 1000:g}"
        )
    return lines


def _model(saved: SavedModel, config: Mapping[str, Any]) -> list[str]:
    if isinstance(saved, Average):
        weights = zip(saved.members or {}, saved.weights, strict=True)
        rows = [f"| {code(name)} | {weight:.3f} |" for name, weight in weights]
        return [
            *("| member of the average | weight |", "|---|---|"),
            *(*rows, "", *_smoothed(saved)),
        ]
    count = sum(parameter.numel() for parameter in saved.model.parameters())
    name = f"baseline {code(config['baseline'])}, " if "baseline" in config else ""
    kind = f"{name}{type(saved.model).__name__} with {count:,} weights"
    lines = [kind, f"features scaled: {saved.scaling.kind}"]
    estimator = config.get("chosen_estimator") or config.get("estimator")
    if estimator is not None and "baseline" not in config:
        lines.append(f"trained with the estimator {code(estimator)}, seed {config.get('seed', 0)}")
    return [*lines, *_smoothed(saved)]


def _smoothed(saved: SavedModel) -> list[str]:
    return [] if saved.smoothing is None else ["predictions are corrected and smoothed"]


def _made(folder: Path, config: Mapping[str, Any]) -> list[str]:
    search = _search_of(folder)
    if search is not None:
        up = "../README.md" if search == folder.parent else "../../README.md"
        lines = [f"by a search: [its card]({up}) has the command"]
        if "baseline" not in config and "average" not in config:
            lines.append(f"trained again: `vrgcn train --config {folder.name}/config.toml`")
        return [*lines, versions_text()]
    return [fenced([command_text("train", config)]), "", versions_text()]


def _search_of(folder: Path) -> Path | None:
    """Return the folder of the search that a run belongs to; None if it belongs to none."""
    home = folder.parent
    home = home.parent if home.name in (TRIALS, BASELINES) else home
    return home if (home / STUDY).is_file() else None


def _limits(scored: Scored, saved: SavedModel) -> list[str]:
    every = [saved, *_members(saved)]
    own = any(part.smoothing is not None or node_tables(part.model) for part in every)
    lines = [
        "meant for this graph, and for others of the same kind with the same feature columns "
        "(`vrgcn import --like` makes them)",
        "scores are of this split of this graph: other times, other sources of data and groups of "
        "nodes by themselves were not tested; `vrgcn evaluate` has more of them",
        "nobody has examined whether errors fall on some people more than on others",
    ]
    if own:
        lines.append(
            "it has rows that belong to single nodes, or labels of training nodes: a new node has "
            "none, and reads those of neighbours that are known"
        )
    if scored.test is None:
        lines.append("without a test score it is not known how well new nodes are predicted")
    labels = not isinstance(saved.model, PairModel) and find_task(saved.task).has_classes
    if saved.calibration is None and labels:
        lines.append("its probabilities have not been compared with how often they are right")
    return lines


def _members(saved: SavedModel) -> list[SavedModel]:
    members = saved.members if isinstance(saved, Average) else None
    return list((members or {}).values())


def _usage(name: str, saved: SavedModel) -> list[str]:
    run = shlex.quote(name)
    python = ["", f"from Python: `vrgcn.load_run({name!r}).predict()`"]
    words: list[tuple[str, dict[str, Any]]] = [("predict", {"out": "predictions.parquet"})]
    if isinstance(saved.model, PairModel):
        told = saved.model.arguments
        asked = "pairs.csv" if told["directions"] is None else "triples.csv"
        words = [("predict", {"pairs": asked, "out": "scored.parquet"})]
        if told["directions"] is None and told.get("values") is None:
            words.append(("recommend", {"out": "partners.parquet"}))
        python = []
    elif saved.calibration is not None and len(saved.calibration.scores):
        words.append(("predict", {"coverage": 0.9, "out": "predictions.parquet"}))
    words += [("evaluate", {}), ("report", {"out": "report.html"})]
    return [
        "in the folder above this one; the report draws the curve of the training",
        "",
        fenced([f"vrgcn {name} {run} {flags_text(**flags)}".rstrip() for name, flags in words]),
        *python,
    ]
