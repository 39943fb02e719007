"""The card of a run: README.md in its folder, which says to a stranger what the model is.

Data, split, scores, calibration, limits, how to predict, settings, and how it was made. A card is
written before the result, so that a finished run has one, and says nothing that depends on time: a
run that was stopped and resumed ends with the same card. Commands in it are for the folder above,
so that they are right after a move. A README.md of the user's own is left as it is.
"""

from __future__ import annotations

import json
import math
import platform
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from vrgcn import __version__
from vrgcn.files.parsing import read_json
from vrgcn.files.settings import declarations
from vrgcn.files.wording import counted, deviation, printable, shortened
from vrgcn.files.writing import write_text
from vrgcn.graph.graph import Graph
from vrgcn.graph.sparse import layout_word
from vrgcn.graph.validation import SPLITS
from vrgcn.graph.visible import rules_of
from vrgcn.inference.calibration import NOT_BETTER
from vrgcn.inference.saved import SavedModel
from vrgcn.models.node_table import node_tables
from vrgcn.pairs.model import PairModel
from vrgcn.runs.config_file import as_written, build
from vrgcn.runs.folder import CARD, CARD_MARK, CONFIG, RESULT, STUDY, is_card, member_runs
from vrgcn.runs.settings import Settings
from vrgcn.targets.scored import scored_edges
from vrgcn.targets.spec import with_usual
from vrgcn.tasks import find_task
from vrgcn.tasks.metrics import titled_metric

Facts = Mapping[str, Sequence[str]]  # sentences by the heading that they stand under
_NAMED = 12  # names of classes, kinds or relations
_LONGEST = 200  # characters of a name


def facts_of(graph: Graph) -> Facts:
    """Return how large a graph is and what its nodes have; its split, and what prevents leaks."""
    layout = layout_word(graph.features).strip()
    data = [
        f"{graph.num_nodes:,} nodes, {graph.num_edges:,} entries of the adjacency matrix, "
        f"{graph.num_features:,} feature columns{layout and f' ({layout})'}"
    ]
    if graph.kinds.named:
        sizes = [f"{name} ({size:,})" for name, size in graph.kinds.sizes.items()]
        data += [f"kinds of nodes: {listed(sizes)}", f"relations: {listed(list(graph.edges))}"]
    if graph.labels is not None:
        task = find_task(graph.task)
        names = graph.names.classes or range(graph.num_classes)
        classes = f"; {graph.num_classes:,} classes: {listed(names)}" if task.has_classes else ""
        known = f"known for {int(graph.labelled.sum()):,} nodes"
        data.append(f"labels: {task.label}, {known}{classes}")
    return {"Data": data, "Split": _split(graph)}


def _split(graph: Graph) -> list[str]:
    edges = scored_edges(graph)
    if edges is not None:
        what, rules = edges.word, edges.predicted.rules
        counts = {name: len(edges.predicted.split(name)) for name in SPLITS}
    else:
        what = "nodes"
        counts = {name: len(graph.split(name)) for name in SPLITS}
        rules = rules_of(graph)
    sizes = ", ".join(f"{name} {count:,}" for name, count in counts.items() if count)
    return [f"{what}: {sizes}", *(f"against leaks: {rule}" for rule in rules)]


def code(text: object) -> str:
    """Return a name of the user's as code in Markdown, on one line and not too long for it."""
    name = printable(shortened(str(text), _LONGEST))
    return f"`{name.replace('`', chr(39)).replace('|', chr(0x2223))}`"


def listed(names: Sequence[object]) -> str:
    """Return the first of some names, and how many more there are."""
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(code(name) for name in names[:_NAMED]) + more


_FENCE = "```"
# Settings of a single run; the graph stands elsewhere in the card.
_SHOWN = declarations(Settings).keys() - {"dataset", "graph"}
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
_VERSIONS = f"vrgcn {__version__}, PyTorch {torch.__version__}, Python {platform.python_version()}"
STANDARD_ERROR = "± is a standard error, by the jackknife over groups of validation nodes"


def write_end(
    folder: Path,
    config: Mapping[str, Any],
    result: Mapping[str, Any],
    saved: SavedModel,
    facts: Facts,
    error: float | None = None,
) -> None:
    """Write the card of a run and, last, its result.json.

    config: its settings by name, as they are written to config.toml
    error: standard error of the validation score; None if it is not known
    """
    sections = {
        "Scores": _scores(result, error),
        "Calibration": _calibration(saved),
        "Model": _model(saved, config),
        "Intended use and limits": _limits(saved),
        "How to predict": _usage(folder.resolve().name, saved),
    }
    write_readme(folder, f"Predicts {_predicted(saved)}.", "train", config, facts, sections)
    write_text(folder / RESULT, json.dumps(result, indent=2) + "\n")


def write_seeds_card(folder: Path, config: Mapping[str, Any], facts: Facts) -> None:
    """Write the card of runs that differ only in their seed: each score, and mean and deviation.

    config: of all of them, as it is written to config.toml
    """
    runs = {run.name: [read_json(run / RESULT)] for run in member_runs(folder)}
    every = [result for results in runs.values() for result in results]
    metric, rows = every[0]["metric"], []
    titled = {f"[{name}]({name}/{CARD})": results for name, results in runs.items()}
    for title, results in {**titled, "mean ± standard deviation": every}.items():
        of_splits = [
            [r[split] for r in results if r[split] is not None] for split in ("val", "test")
        ]
        means = [score_text(metric, fmean(s) if s else None, deviation(s)) for s in of_splits]
        rows.append([title, *means])
    lines = [
        *table(f"| run | validation {metric} | test {metric} |", rows),
        "runs differ in the seed of weights and minibatches; the split is the same, so the "
        "deviation says nothing about other splits",
        "to predict, name one of the runs; its card has the commands, calibration and limits",
    ]
    opening = f"{len(every)} runs with different seeds."
    write_readme(folder, opening, "train", config, facts, {"Scores": lines})


def write_readme(
    folder: Path,
    opening: str,
    verb: str,
    config: Mapping[str, Any],
    facts: Facts,
    sections: Mapping[str, Sequence[str]],
) -> None:
    """Write README.md of a folder of ours, all of it or nothing, unless the user wrote it.

    verb: the command that makes such a folder
    sections: by heading, the lines of a list, of a table or of code
    """
    file = folder / CARD
    if file.exists() and not is_card(file):
        return
    config = as_written(config)
    sections = {**facts, **sections, "Settings": _settings(config)}
    sections["How it was made"] = [_origin(config), *_made(folder, verb, config), _VERSIONS]
    parts = [f"{CARD_MARK}\n# {_line(f'Model card: {folder.resolve().name}')}", _line(opening)]
    parts += [
        f"## {heading}\n\n" + "\n".join(map(_item, lines))
        for heading, lines in sections.items()
        if lines
    ]
    text = "\n\n".join(parts) + "\n"
    write_text(file, printable(text, keep="\n"))  # names of folders may hold any bytes


def said(*sentences: tuple[object, str]) -> list[str]:
    """Return the sentences whose condition holds."""
    return [sentence for holds, sentence in sentences if holds]


def table(head: str, rows: Iterable[Iterable[str]]) -> list[str]:
    """Return the lines of a table in Markdown. head: its first line"""
    body = [f"| {' | '.join(cells)} |" for cells in rows]
    return [head, "|---" * (head.count("|") - 1) + "|", *body, ""]


def score_text(metric: str, score: float | None, error: float | None = None) -> str:
    """Format a score of a metric with this title, and its error if that is known."""
    known = titled_metric(metric)
    if score is None:
        return "–"
    text = f"{score:.4f}" if known is None else known.text(score)
    return text if error is None else f"{text} ± {score_text(metric, error)}"


def _fenced(*commands: str) -> list[str]:
    return ["", f"{_FENCE}sh\n" + "\n".join(commands) + f"\n{_FENCE}", ""]


def _item(line: str) -> str:
    """Return a line of a section: of a table or of code as it is, any other as an item."""
    return line if not line or line.startswith(("|", _FENCE)) else f"- {_line(line)}"


def _line(text: str) -> str:
    return " ".join(text.split())


def _origin(config: Mapping[str, Any]) -> str:
    """Return where the graph of a run comes from."""
    if "dataset" in config:
        return f"data set {code(config['dataset'])}"
    if "graph" in config:
        return f"graph {code(config['graph'])}"
    return "a graph that was given from Python"


def _settings(config: Mapping[str, Any]) -> list[str]:
    """Return the settings that differ from the defaults, as lines of a table."""
    predict = {name: config[name] for name in ("predict",) if name in config}
    usual = {**build(Settings, with_usual(predict)).as_written(), "predict": None}

    def text(value: Any) -> str:
        words = " ".join(map(str, value)) if isinstance(value, list) else value
        return "–" if value is None else code(words)

    rows = [
        (name, text(value), text(usual.get(name)))
        for name, value in config.items()
        if name in _SHOWN and value != usual.get(name)
    ]
    if not rows:
        return ["all settings have their defaults"]
    note = "auto and – are defaults that the graph decides; all settings are in `config.toml`"
    return [*table("| setting | value | default |", rows), note]


def _made(folder: Path, verb: str, config: Mapping[str, Any]) -> list[str]:
    """Return the search that a folder belongs to, and the command that makes it again."""
    up = next((up for up in ("..", "../..") if (folder / up / STUDY).is_file()), None)
    search = said((up, f"by a search: [its card]({up}/{CARD}) has the command"))
    given = "dataset" in config or "graph" in config
    if not given or config.keys() & {"baseline", "average"}:
        return search
    file = Path(folder.resolve().name, CONFIG)
    return [*search, *_fenced(f"vrgcn {verb} --config {shlex.quote(str(file))}")]


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
    return f"{task.label}, of {len(names):,}: {listed(names)}"


def _scores(result: Mapping[str, Any], error: float | None) -> list[str]:
    metric, val, test = (result[name] for name in ("metric", "val", "test"))
    unsmoothed, epoch = result.get("unsmoothed_val"), result["epoch"]
    tested = "not scored" if test is None else score_text(metric, test)
    rows = [("validation", score_text(metric, val, error)), ("test", tested)]
    before = score_text(metric, unsmoothed)
    others = [f"{name} {score_text(metric, v)}" for name, v in result.get("compared", {}).items()]
    return [
        *table(f"| | {metric} |", rows),
        *said(
            (error is not None, STANDARD_ERROR),
            (unsmoothed is not None, f"validation before Correct & Smooth: {before}"),
            (others, f"chosen by a race, validation scores: {', '.join(others)}"),
            (epoch, f"the weights are those of epoch {epoch}"),
            (val is not None, "the validation score is slightly too good: it chose the model"),
            (test is None, "without a test it is not known how well new nodes are predicted"),
        ),
    ]


def _calibration(saved: SavedModel) -> list[str]:
    fitted = saved.calibration
    if isinstance(saved.model, PairModel):
        return ["none: scores of pairs rank, and are no probabilities"]
    if fitted is None:
        return ["none: take the probabilities as ranks, not as chances"]
    classes, same = find_task(saved.task).has_classes, fitted.temperature == 1
    above = f"class {code((saved.classes or '01')[-1])} from a probability of"
    most = math.floor(1000 * len(fitted.scores) / (len(fitted.scores) + 1)) / 1000
    return said(
        (True, f"on {counted(fitted.fitted, 'validation node')}"),
        (classes and same, f"probabilities are those of the model: {NOT_BETTER}"),
        (classes and not same, f"temperature {fitted.temperature:.4g}: outputs are divided by it"),
        (fitted.threshold is not None, f"{above} {fitted.threshold or 0:.4g} on"),
        (len(fitted.scores), f"prediction sets or intervals for coverages up to {most:g}"),
    )


def _model(saved: SavedModel, config: Mapping[str, Any]) -> list[str]:
    staged = [line for stage in saved.stages for line in stage.described]
    if saved.parts:
        rows = [(code(name), f"{weight:.3f}") for name, (weight, _) in saved.parts.items()]
        return [*table("| member of the average | weight |", rows), *staged]
    count = sum(parameter.numel() for parameter in saved.model.parameters())
    name = f"baseline {code(config['baseline'])}, " if "baseline" in config else ""
    estimator = config.get("chosen_estimator") or config.get("estimator")
    way = f"trained with the estimator {code(estimator)}, seed {config.get('seed', 0)}"
    return [
        f"{name}{type(saved.model).__name__} with {count:,} weights",
        f"features scaled: {saved.scaling.kind}",
        *said((estimator and not name, way)),
        *staged,
    ]


def _limits(saved: SavedModel) -> list[str]:
    every = [saved, *(member for _, member in saved.parts.values())]
    stages = [stage for part in every for stage in part.stages]
    own = bool(node_tables(saved.model)) or any(stage.of_nodes for stage in stages)
    return [*_LIMITS, *said((own, _OWN_ROWS))]


def _usage(name: str, saved: SavedModel) -> list[str]:
    run = shlex.quote(name)
    predict, python = f"vrgcn predict {run} --out predictions.parquet", []
    more = []
    if isinstance(saved.model, PairModel):
        arguments = saved.model.arguments
        triples = arguments["directions"] is not None
        file = "triples.csv" if triples else "pairs.csv"
        predict = f"vrgcn predict {run} --pairs {file} --out scored.parquet"
        if not triples and arguments.get("values") is None:
            more = [f"vrgcn recommend {run} --out partners.parquet"]
    else:
        python = [f"from Python: `vrgcn.load_run({name!r}).predict()`"]
        if saved.calibration is not None and len(saved.calibration.scores):
            more = [f"vrgcn predict {run} --coverage 0.9 --out predictions.parquet"]
    rest = [f"vrgcn evaluate {run}", f"vrgcn report {run} --out report.html"]
    folder = "in the folder above this one; the report draws the curve of the training"
    return [folder, *_fenced(predict, *more, *rest), *python]
