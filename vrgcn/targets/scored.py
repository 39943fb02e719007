"""Predicted edges as they are scored: links, values of links, and the edges of all relations.

A scorer gives a score, or a value, to edges: a model with its embeddings, or a simple rule. Simple
rules see training edges only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar, Generic, TypeVar

from torch import Tensor

from vrgcn.data.databases.url import Place
from vrgcn.data.pairs import read_pairs, scored_file, write_values
from vrgcn.data.triples import read_triples, scored_triples
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.graph.graph import Graph
from vrgcn.graph.pairs import Pairs
from vrgcn.graph.triples import RELATIONS, Triples
from vrgcn.pairs.decoders import Decoder
from vrgcn.pairs.ranking import (
    USUAL,
    EmbeddedPairs,
    Scorer,
    collapse_note,
    pair_metric,
    score_pairs,
)
from vrgcn.pairs.rules import simple_rules
from vrgcn.pairs.terms import LOSSES
from vrgcn.pairs.values import (
    NUMBER_LOSSES,
    EmbeddedValues,
    ValueScorer,
    score_values,
    value_metrics,
    value_rules,
)
from vrgcn.targets.predicted import Kind
from vrgcn.tasks.metrics import Metric
from vrgcn.training.config import AUTO
from vrgcn.triples.ranking import (
    METRICS,
    EmbeddedTriples,
    OneDirection,
    TripleScorer,
    score_triples,
)
from vrgcn.triples.rules import simple_rules as triple_rules

S = TypeVar("S")


class ScoredEdges(ABC, Generic[S]):
    """Edges that are predicted, and their scorers S.

    kind: of target; predict: what the setting of that name says
    word: what they are called; noun: what a scorer gives them
    identity: what tells them from others of the same kind
    said: what there is to say of their split beside its rules
    usual_metric: the score that decides where none is named
    losses: by name, the usual one first
    """

    kind: ClassVar[Kind]
    word, noun = "pairs", "scores"
    said: tuple[str, ...] = ()
    identity: Mapping[str, str] = MappingProxyType({})
    predict: str
    usual_metric: str
    losses: tuple[str, ...]
    predicted: Pairs | Triples

    @abstractmethod
    def find_metric(self, name: str) -> Metric:
        """Return the score with a name."""

    @abstractmethod
    def metrics(self, split: str, asked: str | None = None) -> Mapping[str, Metric]:
        """Return the scores that tables have, by name.

        asked: another one that a table has beside the usual ones
        """

    @abstractmethod
    def scorer(self, decoder: Decoder, embeddings: Tensor) -> S:
        """Return the scorer of a model. embeddings: of all nodes, (nodes, width)"""

    @abstractmethod
    def score(self, decoder: Decoder, embeddings: Tensor, rows: Tensor) -> Tensor:
        """Return what a model gives to edges, (rows,) or (rows, classes). rows: as `read`"""

    @abstractmethod
    def partners(
        self, decoder: Decoder, embeddings: Tensor, relation: str | None
    ) -> tuple[Pairs, Scorer]:
        """Return the known pairs of a relation and the scorer of new ones.

        relation: one of its names; None if only one is predicted
        """

    @abstractmethod
    def read(self, place: Place, graph: Graph) -> Tensor:
        """Return the edges of a table, (rows, 2) or (rows, 3) nodes and relations."""

    @abstractmethod
    def write(self, path: Path, graph: Graph, rows: Tensor, scores: Tensor) -> None:
        """Write edges and what a model gives to them, under the nodes' own ids."""

    @abstractmethod
    def scores(self, scorer: S, split: str, names: Sequence[str]) -> dict[str, float]:
        """Return the scores of a split's edges by name."""

    @abstractmethod
    def simple(self, width: int) -> Mapping[str, S]:
        """Return the simple rules by name. width: of the embeddings of the model beside them"""

    @abstractmethod
    def title(self, split: str) -> str:
        """Return words for the edges of a split that are scored."""

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
        if asked is not None and not len(self.predicted.split(asked)):
            raise InputError(f"{setting('split', asked)}: there are no {asked} pairs")
        there = [name for name in ("test", "val") if len(self.predicted.split(name))]
        if not there:
            raise InputError(
                "there are no test and no validation pairs to score: they are those of the run's "
                "own graph"
            )
        return asked or there[0]


class ScoredPairs(ScoredEdges[S]):
    """Edges of one relation."""

    embedded = EmbeddedPairs

    def __init__(self, pairs: Pairs) -> None:
        self.predicted = self.pairs = pairs
        self.predict, self.said = pairs.relation, pairs.said
        self.identity = {"relation": pairs.relation}

    def score(self, decoder: Decoder, embeddings: Tensor, rows: Tensor) -> Tensor:
        return self.embedded(decoder, embeddings, self.pairs.targets).score(rows)

    def partners(
        self, decoder: Decoder, embeddings: Tensor, relation: str | None
    ) -> tuple[Pairs, Scorer]:
        return self.pairs, self.embedded(decoder, embeddings, self.pairs.targets)

    def read(self, place: Place, graph: Graph) -> Tensor:
        return read_pairs(place, graph, self.pairs)


class ScoredLinks(ScoredPairs[Scorer]):
    """Which nodes are linked by one relation."""

    kind = "links"
    usual_metric = "auc"
    losses = ("logistic", *(name for name in LOSSES if name != "logistic"))

    def find_metric(self, name: str) -> Metric:
        return pair_metric(name)

    def metrics(self, split: str, asked: str | None = None) -> Mapping[str, Metric]:
        more = ("hits@50", "hits@100") if split in self.pairs.given else ()
        names = dict.fromkeys((*USUAL, *more, *(() if asked is None else (asked,))))
        return {name: pair_metric(name) for name in names}

    def scorer(self, decoder: Decoder, embeddings: Tensor) -> Scorer:
        return EmbeddedPairs(decoder, embeddings, self.pairs.targets)

    def write(self, path: Path, graph: Graph, rows: Tensor, scores: Tensor) -> None:
        with scored_file(path, graph, self.pairs) as file:
            file.write(rows, score=scores)

    def scores(self, scorer: Scorer, split: str, names: Sequence[str]) -> dict[str, float]:
        return score_pairs(scorer, self.pairs, split, names)

    def simple(self, width: int) -> Mapping[str, Scorer]:
        return simple_rules(self.pairs, width)

    def title(self, split: str) -> str:
        title = f"{len(self.pairs.split(split)):,} {split} pairs of {self.pairs.relation}"
        if split in self.pairs.given:
            title += f", MRR and Hits among {len(self.pairs.given[split]):,} given negatives"
        return title


class ScoredValues(ScoredPairs[ValueScorer]):
    """A number or a class on each edge of a relation."""

    kind, noun = "values", "values"
    embedded = EmbeddedValues

    def __init__(self, pairs: Pairs) -> None:
        super().__init__(pairs)
        assert pairs.target is not None
        self.predict = f"{pairs.relation}.{pairs.target.name}"
        self.losses = ("cross-entropy",) if pairs.target.classes else NUMBER_LOSSES
        self.usual_metric = next(iter(value_metrics(pairs)))

    def find_metric(self, name: str) -> Metric:
        metrics = value_metrics(self.pairs)
        if name not in metrics:
            raise InputError(
                f"{setting('metric', name)} is no score of {self.predict}: it has "
                f"{', '.join(metrics)}"
            )
        return metrics[name]

    def find_loss(self, name: str) -> str:
        if name != AUTO and name not in self.losses:
            raise InputError(
                f"{setting('loss', name)} is no loss of {self.predict}: it has "
                f"{', '.join(self.losses)}"
            )
        return super().find_loss(name)

    def metrics(self, split: str, asked: str | None = None) -> Mapping[str, Metric]:
        return value_metrics(self.pairs)

    def scorer(self, decoder: Decoder, embeddings: Tensor) -> ValueScorer:
        return EmbeddedValues(decoder, embeddings, self.pairs.targets)

    def partners(
        self, decoder: Decoder, embeddings: Tensor, relation: str | None
    ) -> tuple[Pairs, Scorer]:
        target = self.pairs.target
        if target is not None and target.classes:
            raise InputError(
                f"the run predicts classes of pairs ({target.name}), which have no best: vrgcn "
                "predict --pairs tells the class of each pair"
            )
        return super().partners(decoder, embeddings, relation)

    def write(self, path: Path, graph: Graph, rows: Tensor, scores: Tensor) -> None:
        write_values(path, graph, self.pairs, rows, scores)

    def scores(self, scorer: ValueScorer, split: str, names: Sequence[str]) -> dict[str, float]:
        found = score_values(scorer, self.pairs, split)
        return {name: found[name] for name in names}

    def simple(self, width: int) -> Mapping[str, ValueScorer]:
        return value_rules(self.pairs)

    def title(self, split: str) -> str:
        return f"{len(self.pairs.split(split)):,} {split} pairs of {self.predict}"

    def note(self, decoder: Decoder, embeddings: Tensor) -> str | None:
        return None  # values of pairs may be alike


class ScoredRelations(ScoredEdges[TripleScorer]):
    """The edges of all relations."""

    kind, word, predict = "relations", "triples", RELATIONS
    usual_metric = "mrr"
    losses = ("softmax", *(name for name in LOSSES if name != "softmax"))

    def __init__(self, triples: Triples) -> None:
        self.predicted = self.triples = triples

    def find_metric(self, name: str) -> Metric:
        if name not in METRICS:
            raise InputError(f"{setting('metric', name)} is none of {', '.join(METRICS)}")
        return METRICS[name]

    def metrics(self, split: str, asked: str | None = None) -> Mapping[str, Metric]:
        return METRICS

    def scorer(self, decoder: Decoder, embeddings: Tensor) -> TripleScorer:
        return EmbeddedTriples(decoder, embeddings)

    def score(self, decoder: Decoder, embeddings: Tensor, rows: Tensor) -> Tensor:
        return EmbeddedTriples(decoder, embeddings).score(rows)

    def partners(
        self, decoder: Decoder, embeddings: Tensor, relation: str | None
    ) -> tuple[Pairs, Scorer]:
        try:
            direction = self.triples.find(relation or "")
        except InputError as error:
            raise InputError(f"{setting('relation')}: {error}") from None
        scorer = EmbeddedTriples(decoder, embeddings)
        return self.triples.pairs_of(direction), OneDirection(scorer, self.triples, direction)

    def read(self, place: Place, graph: Graph) -> Tensor:
        return read_triples(place, graph, self.triples)

    def write(self, path: Path, graph: Graph, rows: Tensor, scores: Tensor) -> None:
        with scored_triples(path, graph, self.triples) as file:
            file.write(rows, scores)

    def scores(self, scorer: TripleScorer, split: str, names: Sequence[str]) -> dict[str, float]:
        found = score_triples(scorer, self.triples, split)
        return {name: found[name] for name in names}

    def simple(self, width: int) -> Mapping[str, TripleScorer]:
        return triple_rules(self.triples)

    def title(self, split: str) -> str:
        return f"{len(self.triples.split(split)):,} {split} triples, heads and tails, filtered"


def scored_edges(graph: Graph) -> ScoredLinks | ScoredValues | ScoredRelations | None:
    """Return the predicted edges of a graph that `open_target` returned; None for labels."""
    if graph.triples is not None:
        return ScoredRelations(graph.triples)
    if graph.pairs is None:
        return None
    return (ScoredLinks if graph.pairs.target is None else ScoredValues)(graph.pairs)
