"""Predicted edges as they are scored: links, values of links, and the edges of all relations.

A scorer gives a score, or a value, to edges: a model with its embeddings, or a simple rule. Simple
rules see training edges only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from torch import Tensor

from vrgcn.data.databases.url import Place
from vrgcn.data.pairs import read_pairs, scored_file, write_values
from vrgcn.data.triples import read_triples, scored_triples
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.files.settings import AUTO
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
    score_values,
    value_metrics,
    value_rules,
)
from vrgcn.targets.predicted import Kind
from vrgcn.tasks.metrics import Metric
from vrgcn.triples.ranking import (
    METRICS,
    EmbeddedTriples,
    OneDirection,
    score_triples,
)
from vrgcn.triples.rules import simple_rules as triple_rules


class ScoredEdges(ABC):
    """Edges that are predicted.

    kind: of target; predict: what the setting of that name says
    word: what they are called; noun: what a scorer gives them
    said: what there is to say of their split beside its rules
    usual_metric: the score that decides where none is named
    losses: by name, the usual one first
    """

    kind: ClassVar[Kind]
    word, noun = "pairs", "scores"
    said: tuple[str, ...] = ()
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
    def scorer(self, decoder: Decoder, embeddings: Tensor) -> EmbeddedPairs | EmbeddedTriples:
        """Return the scorer of a model. embeddings: of all nodes, (nodes, width)"""

    @abstractmethod
    def simple(self, width: int) -> Mapping[str, Any]:
        """Return the scorers of simple rules by name. width: of embeddings of the model beside
        them"""

    @abstractmethod
    def scores(self, scorer: Any, split: str, names: Sequence[str]) -> dict[str, float]:
        """Return the scores of a split's edges by name, for a scorer of these edges."""

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
    embedded = EmbeddedPairs

    def __init__(self, pairs: Pairs) -> None:
        self.predicted = self.pairs = pairs
        self.predict, self.said = pairs.relation, pairs.said

    def find_metric(self, name: str) -> Metric:
        return pair_metric(name)

    def metrics(self, split: str, asked: str | None = None) -> Mapping[str, Metric]:
        more = ("hits@50", "hits@100") if split in self.pairs.given else ()
        names = dict.fromkeys((*USUAL, *more, *(() if asked is None else (asked,))))
        return {name: pair_metric(name) for name in names}

    def scorer(self, decoder: Decoder, embeddings: Tensor) -> EmbeddedPairs:
        return self.embedded(decoder, embeddings, self.pairs.targets)

    def simple(self, width: int) -> Mapping[str, Any]:
        return simple_rules(self.pairs, width)

    def scores(self, scorer: Any, split: str, names: Sequence[str]) -> dict[str, float]:
        return score_pairs(scorer, self.pairs, split, names)

    def partners(
        self, decoder: Decoder, embeddings: Tensor, relation: str | None
    ) -> tuple[Pairs, Scorer]:
        return self.pairs, self.scorer(decoder, embeddings)

    def read(self, place: Place, graph: Graph) -> Tensor:
        return read_pairs(place, graph, self.pairs)

    def write(self, path: Path, graph: Graph, rows: Tensor, scores: Tensor) -> None:
        with scored_file(path, graph, self.pairs) as file:
            file.write(rows, score=scores)

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

    def scores(self, scorer: Any, split: str, names: Sequence[str]) -> dict[str, float]:
        found = score_values(scorer, self.pairs, split)
        return {name: found[name] for name in names}

    def partners(
        self, decoder: Decoder, embeddings: Tensor, relation: str | None
    ) -> tuple[Pairs, Scorer]:
        if self.target.classes:
            raise InputError(
                f"the run predicts classes of pairs ({self.target.name}), which have no best: "
                "vrgcn predict --pairs tells the class of each pair"
            )
        return super().partners(decoder, embeddings, relation)

    def write(self, path: Path, graph: Graph, rows: Tensor, scores: Tensor) -> None:
        write_values(path, graph, self.pairs, rows, scores)

    def note(self, decoder: Decoder, embeddings: Tensor) -> str | None:
        return None  # values of pairs may be alike

    def _check(self, name: str, value: str, known: tuple[str, ...], word: str) -> None:
        if value not in known:
            has = ", ".join(each for each in known if each != AUTO)
            raise InputError(f"{setting(name, value)} is no {word} of {self.predict}: it has {has}")


class ScoredRelations(ScoredEdges):
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

    def scorer(self, decoder: Decoder, embeddings: Tensor) -> EmbeddedTriples:
        return EmbeddedTriples(decoder, embeddings)

    def simple(self, width: int) -> Mapping[str, Any]:
        return triple_rules(self.triples)

    def scores(self, scorer: Any, split: str, names: Sequence[str]) -> dict[str, float]:
        found = score_triples(scorer, self.triples, split)
        return {name: found[name] for name in names}

    def partners(
        self, decoder: Decoder, embeddings: Tensor, relation: str | None
    ) -> tuple[Pairs, Scorer]:
        try:
            direction = self.triples.find(relation or "")
        except InputError as error:
            raise InputError(f"{setting('relation')}: {error}") from None
        scorer = OneDirection(self.scorer(decoder, embeddings), self.triples, direction)
        return self.triples.pairs_of(direction), scorer

    def read(self, place: Place, graph: Graph) -> Tensor:
        return read_triples(place, graph, self.triples)

    def write(self, path: Path, graph: Graph, rows: Tensor, scores: Tensor) -> None:
        with scored_triples(path, graph, self.triples) as file:
            file.write(rows, scores)

    def title(self, split: str) -> str:
        return f"{len(self.triples.split(split)):,} {split} triples, heads and tails, filtered"


def scored_edges(graph: Graph) -> ScoredEdges | None:
    """Return the predicted edges of a graph that `open_target` returned; None for labels."""
    if graph.triples is not None:
        return ScoredRelations(graph.triples)
    if graph.pairs is None:
        return None
    return (ScoredLinks if graph.pairs.target is None else ScoredValues)(graph.pairs)
