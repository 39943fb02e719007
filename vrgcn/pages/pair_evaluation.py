"""Scores of a model that predicts pairs, simple rules beside them: a table and a file."""

from __future__ import annotations

import json
from collections.abc import Mapping

from torch import Tensor

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


def show_pair_evaluation(run: Run, graph: Graph, embeddings: Tensor, name: str) -> None:
    """Print the scores of a split's pairs, and write them to the folder of the run.

    embeddings: of all nodes, (nodes, width)
    name: the split
    """
    pairs, model = graph.pairs, run.saved.model
    assert pairs is not None
    assert isinstance(model, PairModel)
    metrics = shown_metrics(pairs, name, run.config.get("metric"))
    scorers: dict[str, Scorer] = {MODEL: EmbeddedPairs(model.decoder, embeddings, pairs.targets)}
    scores = {
        title: score_pairs(scorer, pairs, name, tuple(metrics))
        for title, scorer in (scorers | simple_rules(pairs, embeddings.shape[1])).items()
    }
    rows = [
        [title, *(metric.text(found[key]) for key, metric in metrics.items())]
        for title, found in scores.items()
    ]
    title = f"{len(pairs.split(name)):,} {name} pairs of {pairs.relation}"
    if name in pairs.given:
        title += f", MRR and Hits among {len(pairs.given[name]):,} given negatives"
    print_table(text_table(title, ["", *(metric.title for metric in metrics.values())], rows))
    print(f"no leaks: {'; '.join(pairs.rules)}")
    note = collapse_note(embeddings)
    if note is not None:
        print(f"note: {note}")
    for line in winners(scores):
        print(f"note: {line}")
    path = run.folder / f"evaluation-{name}.json"
    write_text(path, json.dumps({"split": name, "pairs": str(pairs), "scores": scores}, indent=2))
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
        raise ValueError(
            f"{setting('split', 'train')}: training pairs carry messages; val and test are scored"
        )
    if split is not None and not len(pairs.split(split)):
        raise ValueError(f"{setting('split', split)}: there are no {split} pairs")
    found = split or next((name for name in ("test", "val") if len(pairs.split(name))), None)
    if found is None:
        raise ValueError(
            "there are no test and no validation pairs to score: they are those of the run's own "
            "graph"
        )
    return found


def winners(scores: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Say where a simple rule does better than the model.

    scores: by title, MODEL among them, and by the name of a metric
    """
    found: dict[str, list[str]] = {}
    for key in scores[MODEL]:
        best = max(scores, key=lambda title: (scores[title][key], title == MODEL))
        if best != MODEL:
            found.setdefault(best, []).append(pair_metric(key).title)
    return [
        f"{rule} does better than the model by {', '.join(metrics)}"
        for rule, metrics in found.items()
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
