"""Scores of a model that predicts edges, simple rules beside them: a table and a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from rich.table import Table
from torch import Tensor

from vrgcn.files.setting_names import Placeholder, setting
from vrgcn.files.wording import printable
from vrgcn.files.writing import PAGES, check_out, write_text
from vrgcn.pages.evaluation import Evaluation
from vrgcn.pages.page import Page
from vrgcn.pages.terminal import text_table
from vrgcn.pairs.model import PairModel
from vrgcn.runs.run import Run
from vrgcn.targets.scored import ScoredEdges
from vrgcn.tasks.metrics import Metric

MODEL = "the model"


@dataclass(frozen=True)
class Compared:
    """Scores of a model and of simple rules, on one split.

    title: what is scored, in words; count: how many edges
    metrics: by name; scores: by MODEL or the name of a rule, and by the name of a metric
    note: what is wrong with the embeddings; None for nothing
    """

    title: str
    count: int
    metrics: Mapping[str, Metric]
    scores: Mapping[str, Mapping[str, float]]
    note: str | None

    @property
    def headings(self) -> list[str]:
        return ["", *(metric.title for metric in self.metrics.values())]

    @property
    def rows(self) -> list[list[str]]:
        return [
            [title, *(metric.text(numbers[key]) for key, metric in self.metrics.items())]
            for title, numbers in self.scores.items()
        ]

    @property
    def notes(self) -> list[str]:
        """What people should know of the scores: a collapse, and where simple rules are better."""
        return [*([] if self.note is None else [self.note]), *winners(self.scores, self.metrics)]


def compare(run: Run, edges: ScoredEdges, embeddings: Tensor, split: str) -> Compared:
    """Score a split's edges by the model and by simple rules.

    embeddings: of all nodes, (nodes, width)
    """
    model = run.saved.model
    assert isinstance(model, PairModel)
    metrics = edges.metrics(split, run.config.get("metric"))
    width = model.decoder.learned(embeddings).shape[1]
    scorers = chain([(MODEL, edges.scorer(model.decoder, embeddings))], edges.simple(width).items())
    scores = {title: edges.scores(scorer, split, tuple(metrics)) for title, scorer in scorers}
    count, note = len(edges.predicted.split(split)), edges.note(model.decoder, embeddings)
    return Compared(edges.title(split), count, metrics, scores, note)


def evaluate_edges(
    run: Run, edges: ScoredEdges, embeddings: Tensor, split: str, out: Path | None
) -> Evaluation:
    """Score a split's edges; write a page, and the numbers beside it.

    out: the page; None: in the run's folder
    """
    done = compare(run, edges, embeddings, split)
    scores = {"split": split, edges.word: str(edges.predicted), "scores": done.scores}
    path = find_edge_page(out, run, split)
    numbers = path.with_name(f"evaluation-{split if out is None else path.stem}.json")
    write_text(numbers, json.dumps(scores, indent=2) + "\n")
    page = Page(f"{run.folder.absolute().name}: {split}")
    page.table(done.headings, done.rows, caption=done.title)
    for line in done.notes:
        page.note(line)
    page.heading("No leaks")
    for rule in edges.predicted.rules:
        page.text(rule)
    page.write(path)
    shown: list[str | Table] = [
        text_table(done.title, done.headings, done.rows),
        f"no leaks: {'; '.join(edges.predicted.rules)}",
        *(f"note: {line}" for line in done.notes),
        f"page: {printable(path)}",
        f"numbers: {printable(numbers)}",
    ]
    return Evaluation(scores, [path, numbers], shown)


def find_edge_page(out: Path | None, run: Run, split: str) -> Path:
    """Return the path of the page; raise if it could not be written."""
    path = out or run.folder / f"evaluation-{split}.html"
    check_out(path, PAGES)
    return path


def winners(scores: Mapping[str, Mapping[str, float]], metrics: Mapping[str, Metric]) -> list[str]:
    """Say where a simple rule does better than the model.

    scores: by title, MODEL among them, and by the name of a metric
    """
    winners: dict[str, list[str]] = {}
    ranks = False
    for key, metric in metrics.items():
        best = MODEL
        for title in scores:
            if metric.better(scores[title][key], scores[best][key]):
                best = title
        if best != MODEL:
            winners.setdefault(best, []).append(metric.title)
            ranks |= "@" in key or key == "mrr"
    lines = [
        f"{rule} does better than the model by {', '.join(titles)}"
        for rule, titles in winners.items()
    ]
    if ranks:
        named = setting("by", Placeholder("RULE"), command="recommend")
        lines[-1] += f"; {named} recommends by a rule"
    return lines
