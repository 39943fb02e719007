"""Scores of a model that predicts a column of pairs, simple rules beside them: a table and a
file."""

from __future__ import annotations

import json

from torch import Tensor

from vrgcn.files.printable import printable
from vrgcn.files.writing import write_text
from vrgcn.graph.graph import Graph
from vrgcn.pages.terminal import print_table, text_table
from vrgcn.pairs.model import PairModel
from vrgcn.pairs.values import (
    EmbeddedValues,
    ValueScorer,
    score_values,
    value_metrics,
    value_rules,
)
from vrgcn.runs.run import Run
from vrgcn.training.value_objective import ValueObjective

MODEL = "the model"


def show_value_evaluation(run: Run, graph: Graph, embeddings: Tensor, name: str) -> None:
    """Print the scores of a split's values, and write them to the folder of the run.

    embeddings: of all nodes, (nodes, width)
    name: the split
    """
    pairs, model = graph.pairs, run.saved.model
    assert pairs is not None
    assert pairs.target is not None
    assert isinstance(model, PairModel)
    metrics = value_metrics(pairs)
    scorers: dict[str, ValueScorer] = {
        MODEL: EmbeddedValues(model.decoder, embeddings, pairs.targets)
    }
    scores = {
        title: score_values(scorer, pairs, name)
        for title, scorer in (scorers | value_rules(pairs)).items()
    }
    rows = [
        [title, *(metric.text(found[key]) for key, metric in metrics.items())]
        for title, found in scores.items()
    ]
    title = f"{len(pairs.split(name)):,} {name} pairs of {pairs.relation}.{pairs.target.name}"
    print_table(text_table(title, ["", *(metric.title for metric in metrics.values())], rows))
    print(f"no leaks: {'; '.join(pairs.rules)}")
    for key, metric in metrics.items():
        for rule, found in scores.items():
            if rule != MODEL and metric.better(found[key], scores[MODEL][key]):
                print(f"note: {rule} does better than the model by {metric.title}")
    path = run.folder / f"evaluation-{name}.json"
    write_text(path, json.dumps({"split": name, "pairs": str(pairs), "scores": scores}, indent=2))
    print(f"written to {printable(path)}")


def print_value_rules(objective: ValueObjective) -> None:
    """Print what simple rules score by the metric of a run, for comparison."""
    pairs, key, metric = objective.pairs, objective.metric_name, objective.metric
    splits = [name for name in ("val", "test") if objective.has_pairs(name)]
    for title, rule in value_rules(pairs).items():
        told = ", ".join(
            f"{'validation' if name == 'val' else name} {metric.title} "
            f"{metric.text(score_values(rule, pairs, name)[key])}"
            for name in splits
        )
        print(f"for comparison, {title}: {told}")
