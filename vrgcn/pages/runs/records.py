"""Records of runs, read from their folders; the runs may be unfinished."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vrgcn.files.kinds import TEXT, Kind, check_kinds, or_null
from vrgcn.files.mistakes import InputError
from vrgcn.files.parsing import parse_json, read_json
from vrgcn.inference import MODEL
from vrgcn.inference.saved import load_model
from vrgcn.runs.folder import METRICS, RESULT, read_config
from vrgcn.runs.run import graph_source
from vrgcn.targets.spec import TargetSpec
from vrgcn.tasks import find_task, tasks_scored_by
from vrgcn.tasks.metrics import LabelMetric, titled_metric

Point = dict[str, float | None]
NONE = "–"
SCORE = "score"  # a metric that no file names

_NUMBER = Kind(
    lambda v: isinstance(v, int | float) and not isinstance(v, bool) and _finite(v),
    "a finite number",
)
_RESULT = {
    "metric": TEXT,
    "epoch": _NUMBER,
    **dict.fromkeys(("val", "test"), or_null(_NUMBER)),
    **dict.fromkeys(("seconds", "evaluation_seconds"), _NUMBER),
}
# A line of metrics without these is no point of a curve. All others may be missing or null.
_NEEDED = ("epoch", "loss", "seconds")


@dataclass(frozen=True)
class RunRecord:
    """The record of a run, from its folder.

    label: a short name, different from those of the runs beside it
    graph: a short name of its graph, the same for the runs on the same graph
    config: the options it was started with
    points: a dict per epoch, from metrics.jsonl
    result: the contents of result.json; None if training has not ended
    metric: such as accuracy, or "score" if no file names it
    torn: True if the last line of metrics.jsonl was cut off
    """

    folder: Path
    label: str
    graph: str
    config: dict[str, Any]
    points: list[Point]
    result: dict[str, Any] | None
    metric: str
    torn: bool

    @property
    def fitted(self) -> bool:
        """True of a baseline or an average of models, which `vrgcn tune` makes without epochs."""
        return is_fitted(self.config)

    @property
    def epochs(self) -> str:
        """Number of epochs as text: 30, or 12 of 30."""
        if self.fitted:
            return NONE
        done, planned = len(self.points), self.config.get("epochs")
        return str(done) if planned in (None, done) else f"{done} of {planned}"

    @property
    def best(self) -> Point | None:
        """The epoch of the best validation score; None if there was no validation."""
        if self.fitted and self.result is not None:
            return {"val": self.result["val"], "epoch": None}
        best: Point | None = None
        for point in self.points:
            val, most = point.get("val"), None if best is None else best["val"]
            if val is not None and (most is None or self.better(val, most)):
                best = point
        return best

    @property
    def predicts_numbers(self) -> bool:
        tasks = [] if self._metric is None else tasks_scored_by(self._metric)
        return any(not task.has_classes for task in tasks)

    @property
    def predicts_pairs(self) -> bool:
        return not TargetSpec.of(self.config).labels

    def better(self, score: float, other: float) -> bool:
        """Return True if a score is better than another; for an unknown metric, larger is
        better."""
        return score > other if self._metric is None else self._metric.better(score, other)

    def score_text(self, score: float | None) -> str:
        """Format a score."""
        if score is None:
            return NONE
        return f"{score:,.4f}" if self._metric is None else self._metric.text(score)

    @property
    def _metric(self) -> LabelMetric | None:
        return titled_metric(self.metric)

    def curve(self, x: str, y: str) -> tuple[list[float], list[float]]:
        """Return the points that have both values, such as x="seconds" and y="val"."""
        pairs = [(point.get(x), point.get(y)) for point in self.points]
        known = [(a, b) for a, b in pairs if a is not None and b is not None]
        return [a for a, _ in known], [b for _, b in known]

    def mean(self, name: str) -> float | None:
        """Return the mean over the epochs that have the value."""
        values = self.curve("epoch", name)[1]
        return sum(values) / len(values) if values else None


def is_fitted(config: Mapping[str, Any]) -> bool:
    """Whether the settings are of a model that was made without epochs."""
    return "baseline" in config or "average" in config


def read_runs(folders: Sequence[Path]) -> list[RunRecord]:
    """Return the runs, each once, in the given order."""
    places = [folder.resolve() for folder in folders]
    unique = [folder for n, folder in enumerate(folders) if places.index(places[n]) == n]
    configs = [read_config(folder) for folder in unique]
    labels = short_names([folder.resolve() for folder in unique])
    graphs = _graph_names(configs)
    return [
        _read_run(folder, label, graph, config)
        for folder, label, graph, config in zip(unique, labels, graphs, configs, strict=True)
    ]


def by_graph(records: Iterable[RunRecord]) -> dict[str, list[RunRecord]]:
    """Group the runs by graph: curves and scores of different graphs are not comparable."""
    groups: dict[str, list[RunRecord]] = {}
    for record in records:
        groups.setdefault(record.graph, []).append(record)
    return groups


def by_metric(records: Sequence[RunRecord]) -> dict[str, list[RunRecord]]:
    """Group the runs by metric. A run without a known metric joins the first known one."""
    known = next((record.metric for record in records if record.metric != SCORE), SCORE)
    groups: dict[str, list[RunRecord]] = {}
    for record in records:
        groups.setdefault(known if record.metric == SCORE else record.metric, []).append(record)
    return groups


def short_names(paths: Sequence[Path]) -> list[str]:
    """Return the last parts of different paths, as many as are needed to tell each from the
    others."""
    names = []
    for path in paths:
        others = [other.parts for other in paths if other != path]
        count = 1
        while any(other[-count:] == path.parts[-count:] for other in others):
            count += 1
        names.append(str(Path(*path.parts[-count:])))
    return names


def _graph_names(configs: Sequence[dict[str, Any]]) -> list[str]:
    sources = [graph_source(config) for config in configs]
    folders = list(dict.fromkeys(graph for _, graph, _ in sources if graph is not None))
    short = dict(zip(folders, short_names(folders), strict=True))
    named = {dataset for dataset, _, _ in sources}
    names = []
    for (dataset, graph, _), config in zip(sources, configs, strict=True):
        if graph is None:
            name = dataset or "unknown graph"
        else:  # a folder may have the name of a data set
            name = str(graph) if short[graph] in named else short[graph]
        names.append(", ".join(filter(None, (name, *_target_name(config)))))
    return names


def _target_name(config: Mapping[str, Any]) -> tuple[str, str]:
    """Name what is predicted, "" for labels, and its split: scores of other pairs, or of nodes that
    were split otherwise, are not comparable."""
    spec = TargetSpec.of(config)
    return "" if spec.labels else str(spec.predict), spec.split_name


def _read_run(folder: Path, label: str, graph: str, config: dict[str, Any]) -> RunRecord:
    points, torn = ([], False) if is_fitted(config) else read_metrics(folder / METRICS)
    result = _read_result(folder / RESULT)
    if result is None:
        label += " (unfinished)"
    metric = _metric(folder, config) if result is None else result["metric"]
    return RunRecord(folder, label, graph, config, points, result, metric, torn)


def read_metrics(path: Path) -> tuple[list[Point], bool]:
    """Return the points of a metrics.jsonl, and whether its last line was cut off and left out."""
    if not path.is_file():
        raise FileNotFoundError(f"{path.parent} is not a run: it has no {path.name}")
    *lines, rest = path.read_bytes().split(b"\n")
    points = [_point(line, f"{path}, line {n}") for n, line in enumerate(lines, 1) if line.strip()]
    torn = False
    if rest.strip():  # a line without its end is still being written, or torn
        try:
            parse_json(rest, "")
        except InputError:
            torn = True
        else:
            points.append(_point(rest, f"{path}, line {len(lines) + 1}"))
    if not points:
        raise InputError(f"{path} has no epoch yet: wait for the run's first, or leave the run out")
    return points, torn


def _point(line: bytes, where: str) -> Point:
    try:
        values = parse_json(line, where)
    except InputError as error:
        raise InputError(
            f"{error}; mend the line or delete it, its epoch will be missing"
        ) from None
    if not isinstance(values, dict):
        raise InputError(f"{where}: {json.dumps(values)[:40]} is not an object of names and values")
    numbers = {
        name: value
        for name, value in values.items()
        if value is None or (isinstance(value, int | float) and not isinstance(value, bool))
    }
    for name in _NEEDED:
        if numbers.get(name) is None:
            raise InputError(f"{where}: has no number {name!r}")
    # Values that are not finite cannot be drawn.
    return {n: v if v is not None and _finite(v) else None for n, v in numbers.items()}


def _finite(value: float) -> bool:
    """Return True if a number is finite; a whole number in JSON may have hundreds of digits."""
    return abs(value) < 1e300


def _read_result(path: Path) -> dict[str, Any] | None:
    if not path.is_file():
        return None
    result = read_json(path)
    if not isinstance(result, dict):
        raise InputError(f"{path}: is not an object; it is not of `vrgcn train`")
    check_kinds(str(path), result, _RESULT)
    return result


def _metric(folder: Path, config: dict[str, Any]) -> str:
    """Return the metric of a run without a result, from its options and its best model so far."""
    try:
        return find_task(load_model(folder / MODEL).task).find_metric(config.get("metric")).title
    except (OSError, InputError):  # no model yet, or a broken one: the curves can still be shown
        return SCORE
