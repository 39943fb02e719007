"""Exact scores of predicted edges, in bounded memory, with ties counted as what they are.

An edge is ranked by each question that it answers: its target among all targets of its source; if
it has no direction, or all relations are predicted, its source among all sources too.

    AUC        probability that a true pair scores higher than a negative; a tie counts half
    AP         mean precision over the true pairs; pairs of one score are ranked together
    MRR        mean of 1 / rank of a true partner among all others that are no known partners
    Hits@K     share of true partners among the first K of these
               Where negatives are given, both rank a true pair among all of these instead: OGB's
               Hits@K, the share of true pairs that score above the K-th highest negative
    recall@K   share of a source's true partners among its first K, training pairs left out; the
               mean over sources
    NDCG@K     the same with 1 / log2(1 + rank), relative to the best possible order

Candidates of one score are in random order: what is reported is the mean over these orders. A
model that gives every pair the same score has AUC 0.5.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.graph.predicted_edges import KnownEdges, PredictedEdges
from vrgcn.pairs.decoders import Decoder
from vrgcn.tasks.metrics import Metric, auc_of, precision_of

ENTRIES = 1 << 23  # scores that are held at a time: 32 MB
K = 20


class Scorer(Protocol):
    """Scores edges, whose rows are those of `PredictedEdges`."""

    def score(self, rows: Tensor) -> Tensor:
        """(edges,) scores of rows."""

    def against(self, sources: Tensor, direction: int = 0) -> Tensor:
        """(sources, targets) scores of some sources with all targets of a direction."""


class EmbeddedEdges:
    """Scores by a decoder and the embeddings of all nodes, (nodes, width)."""

    def __init__(self, decoder: Decoder, embeddings: Tensor, edges: PredictedEdges) -> None:
        self.decoder = decoder
        self.z = embeddings
        self.edges = edges

    @torch.no_grad()
    def score(self, rows: Tensor) -> Tensor:
        size = max(ENTRIES // (4 * self.z.shape[1]), 1)
        parts = [
            self.decoder(self._asked(part[:, 0], directions_of(part)), self.z[part[:, -1]])
            for part in rows.split(size)
        ]
        return torch.cat(parts) if parts else self.z.new_zeros(0)

    @torch.no_grad()
    def against(self, sources: Tensor, direction: int = 0) -> Tensor:
        targets = self.edges.ends(direction).targets
        asked = self._asked(sources, torch.full_like(sources, direction))
        return self.decoder.against(asked, self.z[targets.start : targets.stop])

    def _asked(self, sources: Tensor, directions: Tensor) -> Tensor:
        return self.decoder.query(self.z[sources], directions.to(self.z.device))


class Rule:
    """Scores that are computed for all targets of a source at once."""

    edges: PredictedEdges

    def score(self, rows: Tensor) -> Tensor:
        found = torch.zeros(len(rows))
        for chunk in chunks(self.edges, rows):
            first = self.edges.ends(chunk.direction).targets.start
            scores = self.against(chunk.sources, chunk.direction)
            found[chunk.places] = scores[chunk.rows, rows[chunk.places, -1] - first].float()
        return found

    @abstractmethod
    def against(self, sources: Tensor, direction: int = 0) -> Tensor:
        """See `Scorer`."""


def directions_of(rows: Tensor) -> Tensor:
    """(edges,) the directions of rows: 0 if there is only one relation."""
    return rows[:, 1] if rows.shape[1] == 3 else torch.zeros_like(rows[:, 0])


class Chunk(NamedTuple):
    """Some questions of one direction.

    sources: (sources,) different ones; places: (questions,) which questions they are; rows:
    (questions,) the place of each one's source among the sources
    """

    direction: int
    sources: Tensor
    places: Tensor
    rows: Tensor


def chunks(edges: PredictedEdges, rows: Tensor) -> Iterator[Chunk]:
    """Group rows by direction and source, as many as have scores that are held at a time."""
    directions = directions_of(rows)
    for direction in directions.unique().tolist():
        places = (directions == direction).nonzero()[:, 0]
        places = places[rows[places, 0].argsort(stable=True)]
        sources, counts = torch.unique_consecutive(rows[places, 0], return_counts=True)
        size = max(ENTRIES // max(len(edges.ends(direction).targets), 1), 1)
        first = 0
        for some, count in zip(sources.split(size), counts.split(size), strict=True):
            own = torch.repeat_interleave(torch.arange(len(some)), count)
            yield Chunk(direction, some, places[first : first + len(own)], own)
            first += len(own)


@dataclass(frozen=True)
class Ranks:
    """Places of true partners among their source's candidates.

    sources: (queries,) of each; greater: (queries,) candidates with a larger score; equal: with the
        same one, the partner itself included
    """

    sources: Tensor
    greater: Tensor
    equal: Tensor

    def mean_of(self, gains: Tensor) -> Tensor:
        """(queries,) the mean gain of each over the places it may have; gains: (places,) from the
        first, those of further places are 0."""
        total = torch.cat([gains.new_zeros(1), gains.cumsum(0)])
        last = len(gains)
        first, end = self.greater.clamp(max=last), (self.greater + self.equal).clamp(max=last)
        return (total[end] - total[first]) / self.equal


class Answered(NamedTuple):
    """The scores of a chunk's questions.

    candidates: (sources, targets), minus infinity for what is left out
    here: (questions,) of the own targets; missing: (questions,) whether these are left out
    """

    chunk: Chunk
    candidates: Tensor
    here: Tensor
    missing: Tensor


def _answered(
    scorer: Scorer, edges: PredictedEdges, questions: Tensor, left_out: KnownEdges
) -> Iterator[Answered]:
    for chunk in chunks(edges, questions):
        first = edges.ends(chunk.direction).targets.start
        own = chunk.rows, questions[chunk.places, -1] - first
        scores = scorer.against(chunk.sources, chunk.direction).cpu()
        here = scores[own]
        without(scores, edges, chunk.direction, chunk.sources, left_out, loops=edges.loops)
        yield Answered(chunk, scores, here, scores[own] != here)


def ranks(scorer: Scorer, edges: PredictedEdges, questions: Tensor, left_out: KnownEdges) -> Ranks:
    """The places of the targets of questions (questions, 3) among all targets of their sources.

    left_out: edges that are no candidates, but for the question's own
    """
    greater, equal = (torch.zeros(len(questions), dtype=torch.int64) for _ in range(2))
    for chunk, scores, here, missing in _answered(scorer, edges, questions, left_out):
        size = max(ENTRIES // max(scores.shape[1], 1), 1)
        for part in torch.arange(len(here)).split(size):
            candidates, place = scores.index_select(0, chunk.rows[part]), chunk.places[part]
            greater[place] = (candidates > here[part, None]).sum(1)
            equal[place] = (candidates == here[part, None]).sum(1) + missing[part]
    return Ranks(questions[:, 0], greater, equal)


def ranks_among(true: Tensor, false: Tensor) -> Ranks:
    """The places of the scores of true pairs, each among those of all given negatives. Hits@K of
    these is OGB's: the share of pairs that score above the K-th highest negative."""
    ordered = false.sort().values
    below, until = (torch.searchsorted(ordered, true, right=right) for right in (False, True))
    return Ranks(torch.arange(len(true)), len(false) - until, until - below + 1)


def first_ranks(
    scorer: Scorer, edges: PredictedEdges, questions: Tensor, left_out: KnownEdges, k: int
) -> Ranks:
    """`ranks` for scores that depend only on the first k places: places behind them are given as
    the k-th."""
    greater, equal = (torch.ones(len(questions), dtype=torch.int64) for _ in range(2))
    for chunk, scores, here, missing in _answered(scorer, edges, questions, left_out):
        last = min(k, scores.shape[1])
        top = scores.topk(last).values
        better = (top[chunk.rows] > here[:, None]).sum(1)
        greater[chunk.places] = better
        ahead = (better < last).nonzero()[:, 0]
        rows, mine = chunk.rows[ahead], here[ahead, None]
        same = (top[rows] == mine).sum(1)
        edge = (top[rows, -1:] == mine).nonzero()[:, 0]  # more of them may follow
        for part in edge.split(max(ENTRIES // max(4 * scores.shape[1], 1), 1)):
            same[part] = (scores[rows[part]] == mine[part]).sum(1)
        equal[chunk.places[ahead]] = same + missing[ahead]
    return Ranks(questions[:, 0], greater, equal)


def without(
    scores: Tensor,
    edges: PredictedEdges,
    direction: int,
    sources: Tensor,
    left_out: KnownEdges,
    *,
    loops: bool,
) -> Tensor:
    """The scores (sources, targets) of a direction with minus infinity, in place, for edges that
    are left out and, without loops, for a node with itself."""
    targets = edges.ends(direction).targets
    rows, known = left_out.partners(sources, direction)
    scores[rows, known - targets.start] = -torch.inf
    if not loops:
        own = ((sources >= targets.start) & (sources < targets.stop)).nonzero()[:, 0]
        scores[own, sources[own] - targets.start] = -torch.inf
    return scores


def reciprocal_rank(found: Ranks, places: int) -> float:
    """Mean reciprocal rank. places: how many there are"""
    return float(found.mean_of(1 / torch.arange(1, places + 1).double()).mean())


def hits(found: Ranks, k: int) -> float:
    """Share of partners among the first k."""
    return float(found.mean_of(torch.ones(k).double()).mean())


def recall(found: Ranks, k: int = K) -> float:
    """Mean over sources of the share of their partners among the first k."""
    gained = found.mean_of(torch.ones(k).double())
    return float(_by_source(found, gained) @ (1 / _count(found)) / len(_count(found)))


def ndcg(found: Ranks, k: int = K) -> float:
    """Mean over sources of the discounted gain of their partners, relative to the best order."""
    discount = 1 / torch.arange(2, k + 2).double().log2()
    gained = _by_source(found, found.mean_of(discount))
    best = torch.cat([discount.new_zeros(1), discount.cumsum(0)])[_count(found).long().clamp(max=k)]
    return float((gained / best).mean())


def _count(found: Ranks) -> Tensor:
    return torch.unique(found.sources, return_counts=True)[1].double()


def _by_source(found: Ranks, values: Tensor) -> Tensor:
    sources, place = torch.unique(found.sources, return_inverse=True)
    return values.new_zeros(len(sources)).index_add_(0, place, values)


_AT_K = re.compile(r"(hits|recall|ndcg)@([1-9]\d*)")
_TITLES = {"auc": "AUC", "ap": "AP", "mrr": "MRR", "hits": "Hits", "ndcg": "NDCG"}
# Scores that tables have, in this order: of pairs, and of triples.
USUAL = ("auc", "ap", "mrr", "hits@10", "hits@20", "recall@20", "ndcg@20")
OF_TRIPLES = ("mrr", "hits@1", "hits@3", "hits@10")


def pair_metric(name: str) -> Metric:
    """The score of pairs with a name: auc, ap, mrr, or hits@K, recall@K, ndcg@K for any K."""
    family, k = _parsed(name)
    title = _TITLES.get(family, family)
    return Metric(title if k is None else f"{title}@{k}")


def _parsed(name: str) -> tuple[str, int | None]:
    found = _AT_K.fullmatch(name)
    if found is not None:
        return found[1], int(found[2])
    if name not in ("auc", "ap", "mrr"):
        raise InputError(
            f"{setting('metric', name)} is no score of pairs: they have auc, ap, mrr, and hits@K, "
            "recall@K and ndcg@K for any K, such as hits@20"
        )
    return name, None


def score_edges(
    scorer: Scorer, edges: PredictedEdges, split: str, names: Sequence[str] = USUAL
) -> dict[str, float]:
    """The scores of a split's edges by name.

    Ranks of MRR and Hits leave out all other known edges (in validation all but test edges), or are
    among the given negatives where there are some; those of recall and NDCG leave out the edges of
    splits before this one.
    """
    asked = {name: _parsed(name) for name in names}
    families = {family for family, _ in asked.values()}
    true = edges.split(split)
    found: dict[str, float] = {}
    given = edges.given.get(split)
    compared = {"auc", "ap", *({"mrr", "hits"} if given is not None else ())}
    if families & compared:
        false = edges.negatives[split] if given is None else given
        of_true, of_false = scorer.score(true).cpu(), scorer.score(false).cpu()
        found |= {"auc": auc_of(of_true, of_false), "ap": precision_of(of_true, of_false)}
    if families & {"mrr", "hits"}:
        if given is None:
            known = edges.known_until_val if split == "val" else edges.known
            filtered = ranks(scorer, edges, edges.both_ways(true), known)
            places = edges.num_nodes
        else:
            filtered, places = ranks_among(of_true, of_false), len(given) + 1
        found["mrr"] = reciprocal_rank(filtered, places)
        found |= {n: hits(filtered, k) for n, (f, k) in asked.items() if f == "hits" and k}
    if families & {"recall", "ndcg"}:
        before = edges.known_in_training if split == "val" else edges.known_until_val
        most = max(k for f, k in asked.values() if f in ("recall", "ndcg") and k)
        among = first_ranks(scorer, edges, edges.both_ways(true), before, most)
        found |= {n: recall(among, k) for n, (f, k) in asked.items() if f == "recall" and k}
        found |= {n: ndcg(among, k) for n, (f, k) in asked.items() if f == "ndcg" and k}
    return {name: found[name] for name in names}


def spread(embeddings: Tensor) -> float:
    """Share of the embeddings' squared length that is not common to all: 0 where all are alike."""
    z = embeddings.double()
    length = float(z.square().sum(1).mean())
    return 1 - float(z.mean(0).square().sum()) / length if length > 0 else 0.0


COLLAPSED = 1e-4


def collapse_note(embeddings: Tensor) -> str | None:
    """What to say of embeddings that are all alike; None if they are not."""
    found = spread(embeddings)
    if found >= COLLAPSED:
        return None
    return (
        f"the embeddings have collapsed: they differ by {max(found, 0.0):.1e} of their squared "
        "length, so the scores of all pairs are nearly the same; try a smaller learning rate, more "
        "negatives, or minibatches of pairs"
    )
