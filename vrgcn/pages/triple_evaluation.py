"""Scores of a model that predicts the edges of all relations, simple rules beside them: a table and
a file."""

from __future__ import annotations

from torch import Tensor

from vrgcn.graph.graph import Graph
from vrgcn.pages.pair_evaluation import (
    MODEL,
    Compared,
    pair_split,
    print_compared,
    write_compared,
)
from vrgcn.pairs.model import PairModel
from vrgcn.pairs.ranking import collapse_note
from vrgcn.runs.run import Run
from vrgcn.training.triple_objective import TripleObjective
from vrgcn.triples.ranking import METRICS, EmbeddedTriples, TripleScorer, score_triples
from vrgcn.triples.rules import simple_rules


def compare_triples(run: Run, graph: Graph, embeddings: Tensor, split: str) -> Compared:
    """Score a split's triples by the model and by simple rules.

    embeddings: of all nodes, (nodes, width)
    """
    triples, model = graph.triples, run.saved.model
    assert triples is not None
    assert isinstance(model, PairModel)
    scorers: dict[str, TripleScorer] = {MODEL: EmbeddedTriples(model.decoder, embeddings)}
    scores = {
        title: score_triples(scorer, triples, split)
        for title, scorer in (scorers | simple_rules(triples)).items()
    }
    count = len(triples.split(split))
    title = f"{count:,} {split} triples, heads and tails, filtered"
    return Compared(title, count, METRICS, scores, collapse_note(embeddings))


def show_triple_evaluation(run: Run, graph: Graph, embeddings: Tensor, split: str | None) -> None:
    """Print the scores of a split's triples, and write them to the folder of the run.

    embeddings: of all nodes, (nodes, width)
    split: None for test, else val
    """
    triples = graph.triples
    assert triples is not None
    name = pair_split(triples, split)
    found = compare_triples(run, graph, embeddings, name)
    print_compared(found, triples.rules)
    told = {"split": name, "triples": str(triples), "scores": found.scores}
    write_compared(run.folder / f"evaluation-{name}.json", told)


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
