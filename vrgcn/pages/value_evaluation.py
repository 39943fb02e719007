"""Scores of a model that predicts a column of pairs, simple rules beside them: a table and a
file."""

from __future__ import annotations

from torch import Tensor

from vrgcn.graph.graph import Graph
from vrgcn.pages.pair_evaluation import MODEL, Compared, print_compared, write_compared
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


def compare_values(run: Run, graph: Graph, embeddings: Tensor, split: str) -> Compared:
    """Score a split's values by the model and by simple rules.

    embeddings: of all nodes, (nodes, width)
    """
    pairs, model = graph.pairs, run.saved.model
    assert pairs is not None
    assert pairs.target is not None
    assert isinstance(model, PairModel)
    scorers: dict[str, ValueScorer] = {
        MODEL: EmbeddedValues(model.decoder, embeddings, pairs.targets)
    }
    scores = {
        title: score_values(scorer, pairs, split)
        for title, scorer in (scorers | value_rules(pairs)).items()
    }
    count = len(pairs.split(split))
    title = f"{count:,} {split} pairs of {pairs.relation}.{pairs.target.name}"
    return Compared(title, count, value_metrics(pairs), scores, None)


def show_value_evaluation(run: Run, graph: Graph, embeddings: Tensor, split: str) -> None:
    """Print the scores of a split's values, and write them to the folder of the run."""
    assert graph.pairs is not None
    found = compare_values(run, graph, embeddings, split)
    print_compared(found, graph.pairs.rules)
    told = {"split": split, "pairs": str(graph.pairs), "scores": found.scores}
    write_compared(run.folder / f"evaluation-{split}.json", told)


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
