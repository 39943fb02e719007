"""Predicted edges as they are scored: links, values of links, and the edges of all relations.

A scorer gives a score, or a value, to edges: a model with its embeddings, or a simple rule. Simple
rules see training edges only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import pyarrow as pa
from torch import Tensor

from vrgcn.data.databases.url import Place
from vrgcn.data.edge_tables import edge_batch, ends_of, read_edges, value_columns
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.files.settings import AUTO
from vrgcn.graph.graph import Graph
from vrgcn.graph.pairs import Pairs
from vrgcn.graph.predicted_edges import PredictedEdges
from vrgcn.graph.triples import RELATIONS, Triples
from vrgcn.pairs.decoders import Decoder
from vrgcn.pairs.terms import LOSSES
from vrgcn.pairs.values import NUMBER_LOSSES
from vrgcn.targets.pair_rules import simple_rules
from vrgcn.targets.predicted import Kind
from vrgcn.targets.ranking import (
    OF_TRIPLES,
    USUAL,
    EmbeddedEdges,
    collapse_note,
    pair_metric,
    score_edges,
)
from vrgcn.targets.triple_rules import simple_rules as triple_rules
from vrgcn.targets.value_rules import EmbeddedValues, score_values, value_metrics, value_rules
from vrgcn.tasks.metrics import Metric


class ScoredEdges(ABC):
    """Edges that are predicted.

    kind: of target; predict: what the setting of that name says
    noun: what a scorer gives them
    said: what there is to say of their split beside its rules
    usual_metric: the score that decides where none is named
    losses: by name, the usual one first
    """

    kind: ClassVar[Kind]
    noun = "scores"
    said: tuple[str, ...] = ()
    predict: str
    usual_metric: str
    losses: tuple[str, ...]
    predicted: PredictedEdges
    embedded: ClassVar[type[EmbeddedEdges]] = EmbeddedEdges

    @property
    def word(self) -> str:
        """What edges are called."""
        return f"{self.predicted.word}s"

    @abstractmethod
    def find_metric(self, name: str) -> Metric:
        """Return the score with a name."""

    @abstractmethod
    def metrics(self, split: str, asked: str | None = None) -> Mapping[str, Metric]:
        """Return the scores that tables have, by name.

        asked: another one that a table has beside the usual ones
        """

    def scorer(self, decoder: Decoder, embeddings: Tensor) -> EmbeddedEdges:
        """Return the scorer of a model. embeddings: of all nodes, (nodes, width)"""
        return self.embedded(decoder, embeddings, self.predicted)

    @abstractmethod
    def simple(self, width: int) -> Mapping[str, Any]:
        """Return the scorers of simple rules by name. width: of embeddings of the model beside
        them"""

    def rule(self, name: str, width: int) -> Any:
        """Return the scorer of the simple rule that a setting names. width: see `simple`"""
        rules = self.simple(width)
        found = next((key for key in rules if key.lower() == name.lower()), None)
        if found is None:
            raise InputError(f"{setting('by', name)} is none of {', '.join(rules)}")
        return rules[found]

    def scores(self, scorer: Any, split: str, names: Sequence[str]) -> dict[str, float]:
        """Return the scores of a split's edges by name, for a scorer of these edges."""
        return score_edges(scorer, self.predicted, split, names)

    def direction(self, relation: str | None) -> int:
        """Return the direction in which the best targets are asked for.

        relation: one of its names; None if only one relation is predicted
        """
        return 0

    def read(self, place: Place, graph: Graph) -> Tensor:
        """Return the edges of a table, (rows, 2) or (rows, 3) nodes and relations."""
        return read_edges(place, graph, self.predicted)

    def written(self, graph: Graph, rows: Tensor, scores: Tensor) -> pa.RecordBatch:
        """Return a table of edges and what a model gives to them, under the nodes' own ids."""
        columns = {"score": pa.array(scores.float().numpy())}
        return edge_batch(graph, self.predicted, rows, columns)

    def title(self, split: str) -> str:
        """Return words for the edges of a split that are scored."""
        return f"{len(self.predicted.split(split)):,} {split} pairs of {self.predict}"

    def note(self, decoder: Decoder, embeddings: Tensor) -> str | None:
        """Return what is wrong with embeddings; None for nothing."""
        return collapse_note(decoder.learned(embeddings))

    def find_loss(self, name: str) -> str:
        """Return the loss that a setting stands for."""
        if name == AUTO:
            return self.losses[0]
        if name not in self.losses:
            raise InputError(
                f"{setting('loss', name)} is of single nodes: pairs have {', '.join(LOSSES)}"
            )
        return name

    def find_split(self, asked: str | None) -> str:
        """Return the split to score: the one that is asked for, or test, or val."""
        if asked == "train":
            raise InputError(
                f"{setting('split', 'train')}: training pairs carry messages; val and test are "
                "scored"
            )
        there = [name for name in ("test", "val") if len(self.predicted.split(name))]
        if asked is not None and asked not in there:
            raise InputError(f"{setting('split', asked)}: there are no {asked} pairs")
        if not there:
            raise InputError(
                "there are no test and no validation pairs to score: they are those of the run's "
                "own graph"
            )
        return asked or there[0]


class ScoredLinks(ScoredEdges):
    """Which nodes are linked by one relation."""

    kind: ClassVar[Kind] = "links"
    usual_metric = "auc"
    losses = ("logistic", *(name for name in LOSSES if name != "logistic"))

    def __init__(self, pairs: Pairs) -> None:
        self.predicted = self.pairs = pairs
        self.predict, self.said = pairs.relation, pairs.said

    def find_metric(self, name: str) -> Metric:
        return pair_metric(name)

    def metrics(self, split: str, asked: str | None = None) -> Mapping[str, Metric]:
        more = ("hits@50", "hits@100") if split in self.pairs.given else ()
        names = dict.fromkeys((*USUAL, *more, *(() if asked is None else (asked,))))
        return {name: pair_metric(name) for name in names}

    def simple(self, width: int) -> Mapping[str, Any]:
        return simple_rules(self.pairs, width)

    def title(self, split: str) -> str:
        given = self.pairs.given.get(split)
        more = "" if given is None else f", MRR and Hits among {len(given):,} given negatives"
        return super().title(split) + more


class ScoredValues(ScoredLinks):
    """A number or a class on each edge of a relation."""

    kind, noun = "values", "values"
    embedded = EmbeddedValues

    def __init__(self, pairs: Pairs) -> None:
        super().__init__(pairs)
        assert pairs.target is not None
        self.target = pairs.target
        self.predict = f"{pairs.relation}.{pairs.target.name}"
        self.losses = ("cross-entropy",) if pairs.target.classes else NUMBER_LOSSES
        self.usual_metric = next(iter(value_metrics(pairs)))

    def find_metric(self, name: str) -> Metric:
        self._check("metric", name, tuple(value_metrics(self.pairs)), "score")
        return value_metrics(self.pairs)[name]

    def find_loss(self, name: str) -> str:
        self._check("loss", name, (AUTO, *self.losses), "loss")
        return super().find_loss(name)

    def metrics(self, split: str, asked: str | None = None) -> Mapping[str, Metric]:
        return value_metrics(self.pairs)

    def simple(self, width: int) -> Mapping[str, Any]:
        return value_rules(self.pairs)

    def rule(self, name: str, width: int) -> Any:
        raise InputError(
            f"{setting('by', name)} is for links and relations: simple rules of values rank no "
            "nodes; leave it out"
        )

    def scores(self, scorer: Any, split: str, names: Sequence[str]) -> dict[str, float]:
        found = score_values(scorer, self.pairs, split)
        return {name: found[name] for name in names}

    def direction(self, relation: str | None) -> int:
        if self.target.classes:
            raise InputError(
                f"the run predicts classes of pairs ({self.target.name}), which have no best: "
                "vrgcn predict --pairs tells the class of each pair"
            )
        return super().direction(relation)

    def written(self, graph: Graph, rows: Tensor, scores: Tensor) -> pa.RecordBatch:
        columns = value_columns(self.target, ends_of(self.pairs.kinds), scores)
        return edge_batch(graph, self.pairs, rows, columns)

    def note(self, decoder: Decoder, embeddings: Tensor) -> str | None:
        return None  # values of pairs may be alike

    def _check(self, name: str, value: str, known: tuple[str, ...], word: str) -> None:
        if value not in known:
            has = ", ".join(each for each in known if each != AUTO)
            raise InputError(f"{setting(name, value)} is no {word} of {self.predict}: it has {has}")


class ScoredRelations(ScoredEdges):
    """The edges of all relations."""

    kind, predict = "relations", RELATIONS
    usual_metric = "mrr"
    losses = ("softmax", *(name for name in LOSSES if name != "softmax"))

    def __init__(self, triples: Triples) -> None:
        self.predicted = self.triples = triples

    def find_metric(self, name: str) -> Metric:
        if name not in OF_TRIPLES:
            raise InputError(f"{setting('metric', name)} is none of {', '.join(OF_TRIPLES)}")
        return pair_metric(name)

    def metrics(self, split: str, asked: str | None = None) -> Mapping[str, Metric]:
        return {name: pair_metric(name) for name in OF_TRIPLES}

    def simple(self, width: int) -> Mapping[str, Any]:
        return triple_rules(self.triples)

    def direction(self, relation: str | None) -> int:
        try:
            return self.triples.find(relation or "")
        except InputError as error:
            raise InputError(f"{setting('relation')}: {error}") from None

    def title(self, split: str) -> str:
        return f"{len(self.triples.split(split)):,} {split} triples, heads and tails, filtered"


def validated(graph: Graph) -> int:
    """Return how many nodes or edges a validation score is taken of."""
    edges = scored_edges(graph)
    return len(graph.val if edges is None else edges.predicted.val)


def scored_edges(graph: Graph) -> ScoredEdges | None:
    """Return the predicted edges of a graph that `open_target` returned; None for labels."""
    if graph.triples is not None:
        return ScoredRelations(graph.triples)
    if graph.pairs is None:
        return None
    return (ScoredLinks if graph.pairs.target is None else ScoredValues)(graph.pairs)


def pairs_of(graph: Graph) -> Pairs:
    """Return the pairs of a graph that `open_target` returned for one relation."""
    assert graph.pairs is not None
    return graph.pairs
