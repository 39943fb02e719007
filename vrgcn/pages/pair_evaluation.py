"""Scores of a model that predicts pairs, simple rules beside them: a table and a file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from vrgcn.files.mistakes import InputError
from vrgcn.files.printable import printable
from vrgcn.files.setting_names import setting
from vrgcn.files.writing import write_text
from vrgcn.graph.graph import Graph
from vrgcn.graph.pairs import Pairs
from vrgcn.graph.triples import Triples
from vrgcn.pages.terminal import print_table, text_table
from vrgcn.pairs.model import PairModel
from vrgcn.pairs.ranking import (
    USUAL,
    EmbeddedPairs,
    Scorer,
    collapse_note,
    pair_metric,
    score_pairs,
)
from vrgcn.pairs.rules import simple_rules
from vrgcn.runs.run import Run
from vrgcn.tasks.metrics import Metric
from vrgcn.training.pair_objective import PairObjective

MODEL = "the model"


@dataclass(frozen=True)
class Compared:
    """Scores of a model and of simple rules, on one split.

    title: what is scored, in words; count: how many pairs or triples
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
            [title, *(metric.text(found[key]) for key, metric in self.metrics.items())]
            for title, found in self.scores.items()
        ]

    @property
    def notes(self) -> list[str]:
        """What people should know of the scores: a collapse, and where simple rules are better."""
        return [*([] if self.note is None else [self.note]), *winners(self.scores, self.metrics)]


def compare_pairs(run: Run, graph: Graph, embeddings: Tensor, split: str) -> Compared:
    """Score a split's pairs by the model and by simple rules.

    embeddings: of all nodes, (nodes, width)
    """
    pairs, model = graph.pairs, run.saved.model
    assert pairs is not None
    assert isinstance(model, PairModel)
    metrics = shown_metrics(pairs, split, run.config.get("metric"))
    scorers: dict[str, Scorer] = {MODEL: EmbeddedPairs(model.decoder, embeddings, pairs.targets)}
    learned = model.decoder.learned(embeddings)
    scores = {
        title: score_pairs(scorer, pairs, split, tuple(metrics))
        for title, scorer in (scorers | simple_rules(pairs, learned.shape[1])).items()
    }
    count = len(pairs.split(split))
    title = f"{count:,} {split} pairs of {pairs.relation}"
    if split in pairs.given:
        title += f", MRR and Hits among {len(pairs.given[split]):,} given negatives"
    return Compared(title, count, metrics, scores, collapse_note(learned))


def show_pair_evaluation(run: Run, graph: Graph, embeddings: Tensor, split: str) -> None:
    """Print the scores of a split's pairs, and write them to the folder of the run."""
    assert graph.pairs is not None
    found = compare_pairs(run, graph, embeddings, split)
    print_compared(found, graph.pairs.rules)
    told = {"split": split, "pairs": str(graph.pairs), "scores": found.scores}
    write_compared(run.folder / f"evaluation-{split}.json", told)


def print_compared(found: Compared, rules: Sequence[str]) -> None:
    """Print scores. rules: what was done against leaks"""
    print_table(text_table(found.title, found.headings, found.rows))
    print(f"no leaks: {'; '.join(rules)}")
    for line in found.notes:
        print(f"note: {line}")


def write_compared(path: Path, told: Mapping[str, Any]) -> None:
    """Write scores as JSON."""
    write_text(path, json.dumps(told, indent=2))
    print(f"written to {printable(path)}")


def shown_metrics(pairs: Pairs, split: str, asked: str | None) -> dict[str, Metric]:
    """The scores of a table: the usual ones, more ranks where negatives are given, and the one that
    the run was asked for."""
    more = ("hits@50", "hits@100") if split in pairs.given else ()
    names = dict.fromkeys((*USUAL, *more, *(() if asked is None else (asked,))))
    return {name: pair_metric(name) for name in names}


def pair_split(pairs: Pairs | Triples, split: str | None) -> str:
    """The split to score: the one that is named, or test, or val."""
    if split == "train":
        raise InputError(
            f"{setting('split', 'train')}: training pairs carry messages; val and test are scored"
        )
    if split is not None and not len(pairs.split(split)):
        raise InputError(f"{setting('split', split)}: there are no {split} pairs")
    found = split or next((name for name in ("test", "val") if len(pairs.split(name))), None)
    if found is None:
        raise InputError(
            "there are no test and no validation pairs to score: they are those of the run's own "
            "graph"
        )
    return found


def winners(scores: Mapping[str, Mapping[str, float]], metrics: Mapping[str, Metric]) -> list[str]:
    """Say where a simple rule does better than the model.

    scores: by title, MODEL among them, and by the name of a metric
    """
    found: dict[str, list[str]] = {}
    for key, metric in metrics.items():
        best = MODEL
        for title in scores:
            if metric.better(scores[title][key], scores[best][key]):
                best = title
        if best != MODEL:
            found.setdefault(best, []).append(metric.title)
    return [
        f"{rule} does better than the model by {', '.join(titles)}"
        for rule, titles in found.items()
    ]


def print_rules(objective: PairObjective, width: int) -> None:
    """Print what simple rules score by the metric of a run, for comparison. width: of embeddings"""
    pairs, key = objective.pairs, objective.metric_name
    splits = [name for name in ("val", "test") if objective.has_pairs(name)]
    for title, rule in simple_rules(pairs, width).items():
        told = ", ".join(
            f"{'validation' if name == 'val' else name} {objective.metric.title} "
            f"{objective.metric.text(score_pairs(rule, pairs, name, (key,))[key])}"
            for name in splits
        )
        print(f"for comparison, {title}: {told}")
