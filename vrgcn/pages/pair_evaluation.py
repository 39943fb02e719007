"""Scores of a model that predicts pairs, simple rules beside them: a table and a file."""

from __future__ import annotations

import json

from torch import Tensor

from vrgcn.files.printable import printable
from vrgcn.files.setting_names import setting
from vrgcn.files.writing import write_text
from vrgcn.graph.graph import Graph
from vrgcn.graph.pairs import Pairs
from vrgcn.pages.terminal import print_table, text_table
from vrgcn.pairs.model import PairModel
from vrgcn.pairs.ranking import METRICS, EmbeddedPairs, Scorer, collapse_note, score_pairs
from vrgcn.pairs.rules import simple_rules
from vrgcn.runs.run import Run
from vrgcn.training.pair_objective import PairObjective

MODEL = "the model"


def show_pair_evaluation(run: Run, graph: Graph, embeddings: Tensor, split: str | None) -> None:
    """Print the scores of a split's pairs, and write them to the folder of the run.

    embeddings: of all nodes, (nodes, width)
    split: None for test, else val
    """
    pairs, model = graph.pairs, run.saved.model
    assert pairs is not None
    assert isinstance(model, PairModel)
    name = _found_split(pairs, split)
    scorers: dict[str, Scorer] = {MODEL: EmbeddedPairs(model.decoder, embeddings, pairs.targets)}
    scores = {
        title: score_pairs(scorer, pairs, name)
        for title, scorer in (scorers | simple_rules(pairs)).items()
    }
    rows = [
        [title, *(metric.text(found[key]) for key, metric in METRICS.items())]
        for title, found in scores.items()
    ]
    title = f"{len(pairs.split(name)):,} {name} pairs of {pairs.relation}"
    print_table(text_table(title, ["", *(metric.title for metric in METRICS.values())], rows))
    print(f"no leaks: {'; '.join(pairs.rules)}")
    note = collapse_note(embeddings)
    if note is not None:
        print(f"note: {note}")
    _print_winners(scores)
    path = run.folder / f"evaluation-{name}.json"
    write_text(path, json.dumps({"split": name, "pairs": str(pairs), "scores": scores}, indent=2))
    print(f"written to {printable(path)}")


def _found_split(pairs: Pairs, split: str | None) -> str:
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


def _print_winners(scores: dict[str, dict[str, float]]) -> None:
    """Say where a simple rule does better than the model."""
    found: dict[str, list[str]] = {}
    for key, metric in METRICS.items():
        best = max(scores, key=lambda title: scores[title][key])
        if best != MODEL:
            found.setdefault(best, []).append(metric.title)
    for rule, metrics in found.items():
        print(f"note: {rule} does better than the model by {', '.join(metrics)}")


def print_rules(objective: PairObjective) -> None:
    """Print what simple rules score by the metric of a run, for comparison."""
    pairs, key = objective.pairs, objective.metric_name
    splits = [name for name in ("val", "test") if objective.has_pairs(name)]
    for title, rule in simple_rules(pairs).items():
        told = ", ".join(
            f"{'validation' if name == 'val' else name} {objective.metric.title} "
            f"{objective.metric.text(score_pairs(rule, pairs, name, (key,))[key])}"
            for name in splits
        )
        print(f"for comparison, {title}: {told}")
