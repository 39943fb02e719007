"""Scores of a model that predicts the edges of all relations, simple rules beside them: a table and
a file."""

from __future__ import annotations

import json

from torch import Tensor

from vrgcn.files.printable import printable
from vrgcn.files.writing import write_text
from vrgcn.graph.graph import Graph
from vrgcn.pages.pair_evaluation import MODEL, pair_split, winners
from vrgcn.pages.terminal import print_table, text_table
from vrgcn.pairs.model import PairModel
from vrgcn.pairs.ranking import collapse_note
from vrgcn.runs.run import Run
from vrgcn.training.triple_objective import TripleObjective
from vrgcn.triples.ranking import METRICS, EmbeddedTriples, TripleScorer, score_triples
from vrgcn.triples.rules import simple_rules


def show_triple_evaluation(run: Run, graph: Graph, embeddings: Tensor, split: str | None) -> None:
    """Print the scores of a split's triples, and write them to the folder of the run.

    embeddings: of all nodes, (nodes, width)
    split: None for test, else val
    """
    triples, model = graph.triples, run.saved.model
    assert triples is not None
    assert isinstance(model, PairModel)
    name = pair_split(triples, split)
    scorers: dict[str, TripleScorer] = {MODEL: EmbeddedTriples(model.decoder, embeddings)}
    scores = {
        title: score_triples(scorer, triples, name)
        for title, scorer in (scorers | simple_rules(triples)).items()
    }
    rows = [
        [title, *(metric.text(found[key]) for key, metric in METRICS.items())]
        for title, found in scores.items()
    ]
    title = f"{len(triples.split(name)):,} {name} triples, heads and tails, filtered"
    print_table(text_table(title, ["", *(metric.title for metric in METRICS.values())], rows))
    print(f"no leaks: {'; '.join(triples.rules)}")
    note = collapse_note(embeddings)
    if note is not None:
        print(f"note: {note}")
    for line in winners(scores):
        print(f"note: {line}")
    path = run.folder / f"evaluation-{name}.json"
    told = {"split": name, "triples": str(triples), "scores": scores}
    write_text(path, json.dumps(told, indent=2))
    print(f"written to {printable(path)}")


def print_triple_rules(objective: TripleObjective) -> None:
    """Print what simple rules score by the metric of a run, for comparison."""
    triples, key = objective.triples, objective.metric_name
    splits = [name for name in ("val", "test") if objective.has_pairs(name)]
    for title, rule in simple_rules(triples).items():
        told = ", ".join(
            f"{'validation' if name == 'val' else name} {objective.metric.title} "
            f"{objective.metric.text(score_triples(rule, triples, name)[key])}"
            for name in splits
        )
        print(f"for comparison, {title}: {told}")
