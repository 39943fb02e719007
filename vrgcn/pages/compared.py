"""Scores of a model that predicts edges, simple rules beside them: a table and a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from rich.table import Table
from torch import Tensor

from vrgcn.files.wording import printable
from vrgcn.files.writing import write_text
from vrgcn.pages.evaluation import Evaluation
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
    scorers = {MODEL: edges.scorer(model.decoder, embeddings), **edges.simple(width)}
    scores = {
        title: edges.scores(scorer, split, tuple(metrics)) for title, scorer in scorers.items()
    }
    count, note = len(edges.predicted.split(split)), edges.note(model.decoder, embeddings)
    return Compared(edges.title(split), count, metrics, scores, note)


def evaluate_edges(run: Run, edges: ScoredEdges, embeddings: Tensor, split: str) -> Evaluation:
    """Score a split's edges, and write the scores to the folder of the run."""
    done = compare(run, edges, embeddings, split)
    scores = {"split": split, edges.word: str(edges.predicted), "scores": done.scores}
    path = run.folder / f"evaluation-{split}.json"
    write_text(path, json.dumps(scores, indent=2))
    shown: list[str | Table] = [
        text_table(done.title, done.headings, done.rows),
        f"no leaks: {'; '.join(edges.predicted.rules)}",
        *(f"note: {line}" for line in done.notes),
        f"written to {printable(path)}",
    ]
    return Evaluation(scores, [path], shown)


def winners(scores: Mapping[str, Mapping[str, float]], metrics: Mapping[str, Metric]) -> list[str]:
    """Say where a simple rule does better than the model.

    scores: by title, MODEL among them, and by the name of a metric
    """
    winners: dict[str, list[str]] = {}
    for key, metric in metrics.items():
        best = MODEL
        for title in scores:
            if metric.better(scores[title][key], scores[best][key]):
                best = title
        if best != MODEL:
            winners.setdefault(best, []).append(metric.title)
    return [
        f"{rule} does better than the model by {', '.join(titles)}"
        for rule, titles in winners.items()
    ]
