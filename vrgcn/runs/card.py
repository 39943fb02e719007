"""The card of a run: README.md in its folder, which says to a stranger what the model is.

Data, split, scores, calibration, settings, the command, versions, limits, and how to predict. A
card is written before the result, so that a finished run has one, and says nothing that depends on
time: a run that was stopped and resumed ends with the same card. Commands in it are for the folder
above, so that they are right after a move. A README.md of the user's own is left as it is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from vrgcn import __version__
from vrgcn.data.tables.wording import counted
from vrgcn.files.parsing import read_json
from vrgcn.inference.average import Average
from vrgcn.inference.calibration import NOT_BETTER
from vrgcn.inference.saved import SavedModel
from vrgcn.models.node_table import node_tables
from vrgcn.pairs.model import PairModel
from vrgcn.runs.card_facts import Facts, code, listed
from vrgcn.runs.card_settings import (
    STANDARD_ERROR,
    VERSIONS,
    command,
    fenced,
    made_by,
    said,
    score_text,
    settings_table,
    table,
    write_readme,
)
from vrgcn.runs.config_file import as_written
from vrgcn.runs.folder import BASELINES, CARD, RESULT, STUDY, TRIALS, member_runs
from vrgcn.tasks import find_task
from vrgcn.training.wording import deviation

_LIMITS = (
    "meant for this graph, and for others of the same kind with the same feature columns "
    "(`vrgcn import --like` makes them)",
    "scores are of this split of this graph: other times, other sources of data and groups of "
    "nodes by themselves were not tested; `vrgcn evaluate` has more of them",
    "nobody has examined whether errors fall on some people more than on others",
)
_OWN_ROWS = (
    "it has rows that belong to single nodes, or labels of training nodes: a new node has none, "
    "and reads those of neighbours that are known"
)
_UNTESTED = "without a test score it is not known how well new nodes are predicted"
_UNPROVED = "its probabilities have not been compared with how often they are right"


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
    trained = not {"baseline", "average"} & config.keys()
    sections = {
        "Scores": _scores(scored),
        "Calibration": _calibration(saved),
        "Model": _model(saved, config),
        "Settings": settings_table(config) if trained else [],
        "How it was made": _made(folder, config, trained=trained),
        "Intended use and limits": _limits(scored, saved),
        "How to predict": _usage(folder.resolve().name, saved),
    }
    opening = f"Predicts {_predicted(saved)}. Trained by vrgcn {__version__}."
    write_readme(folder, opening, config, facts, sections)


def write_seeds_card(folder: Path, config: Mapping[str, Any], facts: Facts) -> None:
    """Write the card of runs that differ only in their seed: each score, and mean and deviation.

    config: of all of them, as it is written to config.toml
    """
    config = as_written(config)
    runs = {run.name: read_json(run / RESULT) for run in member_runs(folder)}
    metric = next(iter(runs.values()))["metric"]
    rows = [_row(metric, f"[{run}]({run}/{CARD})", [result]) for run, result in runs.items()]
    rows.append(_row(metric, "mean ± standard deviation", list(runs.values())))
    sections = {
        "Scores": [
            *table(f"| run | validation {metric} | test {metric} |", rows),
            "runs differ in the seed of weights and minibatches; the split is the same, so the "
            "deviation says nothing about other splits",
        ],
        "Settings": settings_table(config),
        "How they were made": made_by("train", config, seeds=config["seeds"]),
        "How to predict": [
            "name one of the runs; its card has the commands, its calibration and its limits"
        ],
    }
    write_readme(folder, f"{len(runs)} runs with different seeds.", config, facts, sections)


def _predicted(saved: SavedModel) -> str:
    if isinstance(saved.model, PairModel):
        arguments = saved.model.arguments
        if arguments["directions"] is not None:
            return "edges of all relations"
        valued = arguments.get("values") is not None
        what = "a value of each pair of" if valued else "which nodes are linked, by"
        return f"{what} the relation {code(arguments['relation'])}"
    task = find_task(saved.task)
    if not task.has_classes:
        return task.label
    names = saved.classes or range(saved.num_classes or 0)
    return f"{task.label}, of {len(names):,}: {listed(list(names))}"


def _scores(scored: Scored) -> list[str]:
    metric, chosen, tested = scored.metric, scored.val is not None, scored.test is not None
    test = score_text(metric, scored.test) if tested else "not scored"
    rows = [("validation", score_text(metric, scored.val, scored.error)), ("test", test)]
    before = score_text(metric, scored.unsmoothed)
    return [
        *table(f"| | {metric} |", rows),
        *said(
            (scored.error is not None, STANDARD_ERROR),
            (scored.unsmoothed is not None, f"validation before Correct & Smooth: {before}"),
            (scored.epoch, f"the weights are those of epoch {scored.epoch}"),
            (chosen, "the validation score is slightly too good: it chose the epoch or the model"),
            (not chosen, "there was no validation: nothing was chosen by it"),
            (not tested, "the test was not scored: nothing here can have been chosen by it"),
        ),
    ]


def _calibration(saved: SavedModel) -> list[str]:
    found = saved.calibration
    if isinstance(saved.model, PairModel):
        return ["none: scores of pairs rank, and are no probabilities"]
    if found is None:
        return ["none: take the probabilities as ranks, not as chances"]
    classes, same = find_task(saved.task).has_classes, found.temperature == 1
    above = f"class {code((saved.classes or '01')[-1])} from a probability of"
    most = math.floor(1000 * len(found.scores) / (len(found.scores) + 1)) / 1000
    return said(
        (True, f"on {counted(found.fitted, 'validation node')}"),
        (classes and same, f"probabilities are those of the model: {NOT_BETTER}"),
        (classes and not same, f"temperature {found.temperature:.4g}: outputs are divided by it"),
        (found.threshold is not None, f"{above} {found.threshold or 0:.4g} on"),
        (len(found.scores), f"prediction sets or intervals for coverages up to {most:g}"),
    )


def _model(saved: SavedModel, config: Mapping[str, Any]) -> list[str]:
    smoothed = said((saved.smoothing, "predictions are corrected and smoothed"))
    if isinstance(saved, Average):
        weights = zip(saved.members or {}, saved.weights, strict=True)
        rows = [(code(name), f"{weight:.3f}") for name, weight in weights]
        return [*table("| member of the average | weight |", rows), *smoothed]
    count = sum(parameter.numel() for parameter in saved.model.parameters())
    name = f"baseline {code(config['baseline'])}, " if "baseline" in config else ""
    estimator = config.get("chosen_estimator") or config.get("estimator")
    way = f"trained with the estimator {code(estimator)}, seed {config.get('seed', 0)}"
    return [
        f"{name}{type(saved.model).__name__} with {count:,} weights",
        f"features scaled: {saved.scaling.kind}",
        *said((estimator and not name, way)),
        *smoothed,
    ]


def _made(folder: Path, config: Mapping[str, Any], *, trained: bool) -> list[str]:
    home = folder.parent
    inside = home.name in (TRIALS, BASELINES)
    if not ((home.parent if inside else home) / STUDY).is_file():
        return made_by("train", config)
    up = "../../README.md" if inside else "../README.md"
    again = f"trained again: `vrgcn train --config {folder.name}/config.toml`"
    search = f"by a search: [its card]({up}) has the command"
    return [search, *said((trained, again)), VERSIONS]


def _limits(scored: Scored, saved: SavedModel) -> list[str]:
    every = [saved, *((isinstance(saved, Average) and saved.members) or {}).values()]
    own = any(part.smoothing is not None or node_tables(part.model) for part in every)
    classes = not isinstance(saved.model, PairModel) and find_task(saved.task).has_classes
    return [
        *_LIMITS,
        *said(
            (own, _OWN_ROWS),
            (scored.test is None, _UNTESTED),
            (saved.calibration is None and classes, _UNPROVED),
        ),
    ]


def _usage(name: str, saved: SavedModel) -> list[str]:
    more, python = [], ["", f"from Python: `vrgcn.load_run({name!r}).predict()`"]
    first = {"out": "predictions.parquet"}
    if isinstance(saved.model, PairModel):
        arguments, python = saved.model.arguments, []
        triples = arguments["directions"] is not None
        first = {"pairs": "triples.csv" if triples else "pairs.csv", "out": "scored.parquet"}
        if not triples and arguments.get("values") is None:
            more = [command("recommend", name, out="partners.parquet")]
    elif saved.calibration is not None and len(saved.calibration.scores):
        more = [command("predict", name, coverage=0.9, **first)]
    rest = [command("evaluate", name), command("report", name, out="report.html")]
    return [
        "in the folder above this one; the report draws the curve of the training",
        "",
        *fenced(command("predict", name, **first), *more, *rest),
        *python,
    ]


def _row(metric: str, title: str, results: Sequence[Mapping[str, Any]]) -> list[str]:
    cells = [title]
    for split in ("val", "test"):
        scores = [result[split] for result in results if result[split] is not None]
        mean = fmean(scores) if scores else None
        cells.append(score_text(metric, mean, deviation(scores)))
    return cells
