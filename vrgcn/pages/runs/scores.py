"""Scores on the test nodes, by one more exact prediction with each run's model."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from vrgcn.data import find_dataset, root_folder
from vrgcn.data.opening import open_graph
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.graph.graph import Graph
from vrgcn.inference.predict import exact_sweeps, predict
from vrgcn.inference.saved import model_labels
from vrgcn.pages.compared import MODEL, Compared, compare
from vrgcn.pages.evaluation import (
    CLASS_COLUMNS,
    class_row,
    main_classes,
    show_matrix,
    show_trust,
)
from vrgcn.pages.page import Page
from vrgcn.pages.runs.records import RunRecord
from vrgcn.pages.trust import Trust, trust_of
from vrgcn.runs.run import Run, graph_source, open_run
from vrgcn.targets.opening import open_target
from vrgcn.targets.scored import ScoredEdges, scored_edges
from vrgcn.tasks import find_task
from vrgcn.tasks.metrics import (
    METRICS,
    ClassScores,
    LabelMetric,
    class_scores,
    confusion,
    titled_metric,
)


@dataclass(frozen=True)
class RunScores:
    """Scores of one run. total: by the run's own metric; nodes: their number

    trust: of probabilities, sets and intervals; None if the model is not calibrated
    """

    total: float
    nodes: int
    trust: Trust | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class RunClasses(RunScores):
    """Scores of a classification run.

    classes: their names; by_class: scores on the test nodes
    confusion: (classes, classes) counts, rows are the true class; None if nodes have several
        classes
    """

    classes: list[str]
    by_class: ClassScores
    confusion: Tensor | None = None


@dataclass(frozen=True)
class RunNumbers(RunScores):
    """Scores of a regression run. scores: by metrics of numbers"""

    scores: dict[LabelMetric, float]


@dataclass(frozen=True)
class RunPairs(RunScores):
    """Scores of a run that predicts pairs, simple rules beside them."""

    compared: Compared


@dataclass(frozen=True)
class NoScores:
    """The reason why a run's model could not be scored."""

    reason: str


class RunScorer:
    """Predicts for one run after another; consecutive runs on one graph open it once."""

    def __init__(self, data_root: Path | None, device: torch.device) -> None:
        self.data_root = data_root
        self.device = device
        self._opened: tuple[object, Graph] | None = None

    def __call__(self, record: RunRecord) -> RunScores | NoScores:
        # A report shows what is available: a graph that was moved, or a missing model, becomes a
        # line on the page.
        try:
            return self._score(record)
        except (OSError, InputError) as error:
            return NoScores(str(error).splitlines()[0])

    def _score(self, record: RunRecord) -> RunScores:
        run = open_run(record.folder, self.device)
        graph = self._graph(run)
        edges = scored_edges(graph)
        if edges is not None:
            return _score_edges(record, run, graph, edges)
        labels = model_labels(run.saved, graph)
        if not len(graph.test):
            raise InputError("the graph has no test nodes")
        outputs = predict(run.saved, graph, graph.test, kind="all")
        truth = labels[graph.test]
        task = find_task(run.saved.task)
        metric = titled_metric(record.metric) or task.find_metric()
        total, count = metric.compute(outputs, truth), len(graph.test)
        every = outputs.new_zeros((graph.num_nodes, outputs.shape[1]))
        every[graph.test] = outputs
        trust = trust_of(run.saved, graph, every, labels, graph.test)
        if not task.has_classes:
            metrics = [METRICS[name] for name in task.metrics]
            scores = {m: m.compute(outputs, truth) for m in metrics}
            return RunNumbers(total, count, scores, trust=trust)
        classes = run.saved.classes or [str(index) for index in range(outputs.shape[1])]
        matrix = None if task.several else confusion(outputs, truth)
        by_class = class_scores(outputs, truth)
        return RunClasses(total, count, classes, by_class, matrix, trust=trust)

    def _graph(self, run: Run) -> Graph:
        """Return the run's own graph with its split, and features scaled as the model needs."""
        dataset, folder, root = graph_source(run.config)
        source = dataset, folder, self.data_root or root
        if self._opened is None or self._opened[0] != source:
            self._opened = None  # one graph in memory at a time
            _check_present(dataset, source[2])
            self._opened = source, open_graph(*source).graph
        return run.saved.prepare(open_target(run.target, self._opened[1], folder))


def _score_edges(record: RunRecord, run: Run, graph: Graph, edges: ScoredEdges) -> RunPairs:
    embeddings = exact_sweeps(run.saved, graph).outputs(None)
    compared = compare(run, edges, embeddings, edges.find_split(None))
    own = {metric.title: name for name, metric in compared.metrics.items()}
    total = compared.scores[MODEL].get(own.get(record.metric, ""), math.nan)
    return RunPairs(total, compared.count, compared)


def _check_present(dataset: str | None, root: Path | None) -> None:
    """Raise if raw files are missing: a report downloads nothing."""
    raw = None if dataset is None else find_dataset(dataset).raw
    if raw is None:
        return
    folder = raw.folder(root_folder(root))
    if not (raw.present(folder) if raw.files else folder.is_dir()):
        raise FileNotFoundError(
            f"the raw files of {dataset} are not in {root_folder(root)}; {setting('data_root')} "
            "says where"
        )


def show_scores(
    page: Page,
    records: Sequence[RunRecord],
    score_run: Callable[[RunRecord], RunScores | NoScores],
) -> list[str]:
    """Show tables of the runs on one graph; return a line for each run that could not be scored."""
    answers = {record.label: score_run(record) for record in records}
    scored = {label: a for label, a in answers.items() if isinstance(a, RunScores)}
    failed = [
        f"{label}: no {scores_name(records).lower()}: {answer.reason}"
        for label, answer in answers.items()
        if isinstance(answer, NoScores)
    ]
    for line in failed:
        page.text(line)
    for record in records:
        if record.label in scored:
            _note_difference(page, record, scored[record.label])
    _show_classes(page, {k: v for k, v in scored.items() if isinstance(v, RunClasses)})
    _show_numbers(page, {k: v for k, v in scored.items() if isinstance(v, RunNumbers)})
    _show_pairs(page, {k: v for k, v in scored.items() if isinstance(v, RunPairs)})
    show_trust(page, {label: run.trust for label, run in scored.items()}, "test")
    return failed


def scores_name(records: Sequence[RunRecord]) -> str:
    """Return the title of the scores of the runs on one graph."""
    plain = any(record.predicts_numbers or record.predicts_pairs for record in records)
    return "Scores" if plain else "Scores by class"


def _show_pairs(page: Page, scored: dict[str, RunPairs]) -> None:
    """Show a table for each run: the model and the simple rules. Where a rule is better, the page
    says so."""
    for label, run in scored.items():
        compared = run.compared
        page.table(compared.headings, compared.rows, caption=f"{label}: {compared.title}")
        for line in compared.notes:
            page.note(f"{label}: {line}")


def _show_numbers(page: Page, scored: dict[str, RunNumbers]) -> None:
    """Show a row for each run and a column for each metric. No best value is marked: these are test
    scores."""
    if not scored:
        return
    metrics = list(next(iter(scored.values())).scores)
    rows = [
        [label, f"{run.nodes:,}", *(metric.text(run.scores[metric]) for metric in metrics)]
        for label, run in scored.items()
    ]
    titles = [metric.title for metric in metrics]
    page.table(["run", "nodes", *titles], rows, caption="On the test nodes")


def _show_classes(page: Page, scored: dict[str, RunClasses]) -> None:
    if len(scored) > 1:
        _compare(page, scored)
    for label, scores in scored.items():
        title = f"{label}: {scores.nodes:,} test nodes, macro-F1 {scores.by_class.macro_f1:.4f}"
        if len(scored) == 1 and len(scores.classes) == len(main_classes(scores.by_class)):
            page.text(title)
            _details(page, scores)
        else:
            with page.fold(f"{title}; confusion matrix"):
                _details(page, scores)


def _note_difference(page: Page, record: RunRecord, scores: RunScores) -> None:
    """Add a note if the model's score differs from the one that the run recorded."""
    then = None if record.result is None else record.result["test"]
    if then is None:
        return
    metric = titled_metric(record.metric)
    # Rounding on another machine may flip a node; a larger difference means another graph or model.
    allowed = 0.002 + 1 / scores.nodes
    if metric is not None and metric.error:
        allowed = 0.002 * then
    if abs(then - scores.total) > allowed:
        now, before = (record.score_text(score) for score in (scores.total, then))
        page.note(
            f"{record.label}: the model's test score is {now} now and was {before} when training "
            "ended: the graph or the model is not the same any more."
        )


def _details(page: Page, scores: RunClasses) -> None:
    page.table(
        ["class", *CLASS_COLUMNS],
        [[name, *class_row(scores.by_class, c)] for c, name in enumerate(scores.classes)],
    )
    if scores.confusion is not None:
        show_matrix(page, scores.confusion, scores.by_class, scores.classes, "test")


def _compare(page: Page, scored: dict[str, RunClasses]) -> None:
    """Show F1 of each class, a column for each run. No best value is marked: these are test scores,
    and a run is chosen by its validation score."""
    first = next(iter(scored.values()))
    alike = {label: s for label, s in scored.items() if s.classes == first.classes}
    shown = main_classes(first.by_class)
    rows = []
    for place in shown:
        f1 = [float(scores.by_class.f1[place]) for scores in alike.values()]
        texts = ["–" if math.isnan(value) else f"{value:.3f}" for value in f1]
        rows.append([first.classes[place], f"{int(first.by_class.support[place]):,}", *texts])
    macro = [f"{scores.by_class.macro_f1:.3f}" for scores in alike.values()]
    rows.append(["all (macro-F1)", f"{first.nodes:,}", *macro])
    caption = "F1 on the test nodes"
    if len(shown) < len(first.classes):
        caption += f"; the {len(shown)} largest of {len(first.classes)} classes"
    page.table(["class", "support", *alike], rows, caption=caption)
