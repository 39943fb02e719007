"""Exact scores of predicted pairs, in bounded memory, with ties counted as what they are.

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
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.graph.pairs import KnownPairs, Pairs
from vrgcn.pairs.decoders import Decoder
from vrgcn.tasks.metrics import Metric, auc_of, precision_of

ENTRIES = 1 << 23  # scores that are held at a time: 32 MB
K = 20


class Scorer(Protocol):
    """Scores pairs."""

    def score(self, pairs: Tensor) -> Tensor:
        """(pairs,) scores of (pairs, 2)."""

    def against(self, sources: Tensor) -> Tensor:
        """(sources, targets) scores of some sources with all targets."""


class EmbeddedPairs:
    """Scores by a decoder and the embeddings of all nodes, (nodes, width)."""

    def __init__(self, decoder: Decoder, embeddings: Tensor, targets: range) -> None:
        self.decoder = decoder
        self.z = embeddings
        self.targets = self.z[targets.start : targets.stop]

    @torch.no_grad()
    def score(self, pairs: Tensor) -> Tensor:
        size = max(ENTRIES // (4 * self.z.shape[1]), 1)
        parts = [self.decoder(self.z[part[:, 0]], self.z[part[:, 1]]) for part in pairs.split(size)]
        return torch.cat(parts) if parts else self.z.new_zeros(0)

    @torch.no_grad()
    def against(self, sources: Tensor) -> Tensor:
        return self.decoder.against(self.z[sources], self.targets)


def scores_by_source(scorer: Scorer, pairs: Tensor, targets: range) -> Tensor:
    """(pairs,) scores of (pairs, 2), by a scorer that computes all targets of a source at once.
    Each source is computed once, a chunk of them at a time."""
    order = pairs[:, 0].argsort(stable=True)
    sources, counts = torch.unique_consecutive(pairs[order, 0], return_counts=True)
    size = max(ENTRIES // max(len(targets), 1), 1)
    found, first = torch.zeros(len(pairs)), 0
    for some, count in zip(sources.split(size), counts.split(size), strict=True):
        here = order[first : first + int(count.sum())]
        first += len(here)
        row = torch.repeat_interleave(torch.arange(len(some)), count)
        found[here] = scorer.against(some)[row, pairs[here, 1] - targets.start].float()
    return found


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


def ranks(scorer: Scorer, pairs: Pairs, queries: Tensor, left_out: KnownPairs) -> Ranks:
    """The places of the targets of `queries` (queries, 2) among all targets of their sources.

    queries: those of one source follow each other, so that its candidates are scored once
    left_out: pairs that are no candidates, but for the query's own
    """
    sources, place = torch.unique_consecutive(queries[:, 0], return_inverse=True)
    ends = torch.bincount(place, minlength=len(sources)).cumsum(0)
    size = max(ENTRIES // max(len(pairs.targets), 1), 1)
    found, start = [], 0
    for first in range(0, len(sources), size):
        some = sources[first : first + size]
        scores = scorer.against(some).cpu()
        end = int(ends[first + len(some) - 1])
        rows, own = place[start:end] - first, queries[start:end, 1] - pairs.targets.start
        here = scores[rows, own]
        scores = without(scores, pairs, some, left_out)
        for part in torch.arange(end - start).split(size):
            found.append(_compared(scores, rows[part], own[part], here[part]))
        start = end
    if not found:
        none = queries.new_zeros(0)
        return Ranks(none, none, none)
    greater, equal = (torch.cat(part) for part in zip(*found, strict=True))
    return Ranks(queries[:, 0], greater, equal)


def _compared(scores: Tensor, rows: Tensor, own: Tensor, here: Tensor) -> tuple[Tensor, Tensor]:
    """(queries,) how many candidates score more than the query's own target, and as much, with it.

    scores: (sources, targets), minus infinity for what is left out; here: (queries,) of the targets
    """
    candidates = scores.index_select(0, rows)
    greater = (candidates > here[:, None]).sum(1)
    equal = (candidates == here[:, None]).sum(1)
    return greater, equal + (scores[rows, own] != here).long()


def ranks_among(true: Tensor, false: Tensor) -> Ranks:
    """The places of the scores of true pairs, each among those of all given negatives. Hits@K of
    these is OGB's: the share of pairs that score above the K-th highest negative."""
    ordered = false.sort().values
    below, until = (torch.searchsorted(ordered, true, right=right) for right in (False, True))
    return Ranks(torch.arange(len(true)), len(false) - until, until - below + 1)


def first_ranks(
    scorer: Scorer, pairs: Pairs, queries: Tensor, left_out: KnownPairs, k: int
) -> Ranks:
    """`ranks` for scores that depend on the first k places alone, the candidates of a source scored
    once: places behind them are given as the k-th.

    queries: (queries, 2) ascending by source
    """
    sources, counts = torch.unique_consecutive(queries[:, 0], return_counts=True)
    k = min(k, len(pairs.targets))
    size = max(ENTRIES // max(len(pairs.targets), 1), 1)
    greater, equal = torch.full((len(queries),), k), torch.ones(len(queries), dtype=torch.int64)
    first = 0
    for some, count in zip(sources.split(size), counts.split(size), strict=True):
        place = slice(first, first + int(count.sum()))
        first = place.stop
        row = torch.repeat_interleave(torch.arange(len(some)), count)
        own = queries[place, 1] - pairs.targets.start
        scores = scorer.against(some).cpu()
        here = scores[row, own]
        scores = without(scores, pairs, some, left_out)
        top = scores.topk(k).values
        better = (top[row] > here[:, None]).sum(1)
        ahead = (better < k).nonzero()[:, 0]
        greater[place][ahead] = better[ahead]
        rows, mine = row[ahead], here[ahead, None]
        same = (top[rows] == mine).sum(1)
        edge = (top[rows, -1:] == mine).nonzero()[:, 0]  # more of them may follow
        for part in edge.split(max(size // 4, 1)):
            same[part] = (scores[rows[part]] == mine[part]).sum(1)
        # A query that is left out for its source is a candidate of its own.
        same += scores[rows, own[ahead]] != mine[:, 0]
        equal[place][ahead] = same
    return Ranks(queries[:, 0], greater, equal)


def without(scores: Tensor, pairs: Pairs, sources: Tensor, left_out: KnownPairs) -> Tensor:
    """The scores (sources, targets) with minus infinity, in place, for pairs that are left out and
    for a node with itself."""
    start, stop = pairs.targets.start, pairs.targets.stop
    rows = left_out.partners.rows(sources)
    scores[rows.row_of_entry, rows.indices - start] = -torch.inf
    loops = (sources >= start) & (sources < stop)
    scores[loops.nonzero()[:, 0], sources[loops] - start] = -torch.inf
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
# Scores that tables have, in this order.
USUAL = ("auc", "ap", "mrr", "hits@10", "hits@20", "recall@20", "ndcg@20")


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


def score_pairs(
    scorer: Scorer, pairs: Pairs, split: str, names: Sequence[str] = USUAL
) -> dict[str, float]:
    """The scores of a split's pairs by name.

    Ranks of MRR and Hits leave out all other known pairs (in validation all but test pairs), or are
    among the given negatives where there are some; those of recall and NDCG leave out the pairs of
    splits before this one.
    """
    asked = {name: _parsed(name) for name in names}
    families = {family for family, _ in asked.values()}
    true = pairs.split(split)
    found: dict[str, float] = {}
    given = pairs.given.get(split)
    compared = {"auc", "ap", *({"mrr", "hits"} if given is not None else ())}
    if families & compared:
        false = pairs.negatives[split] if given is None else given
        of_true, of_false = scorer.score(true).cpu(), scorer.score(false).cpu()
        found |= {"auc": auc_of(of_true, of_false), "ap": precision_of(of_true, of_false)}
    queries = true if pairs.directed else torch.cat([true, true.flip(1)])
    queries = queries[queries[:, 0].argsort(stable=True)]
    if families & {"mrr", "hits"}:
        if given is None:
            known = pairs.known_until_val if split == "val" else pairs.known
            filtered = ranks(scorer, pairs, queries, known)
            places = len(pairs.targets)
        else:
            filtered, places = ranks_among(of_true, of_false), len(given) + 1
        found["mrr"] = reciprocal_rank(filtered, places)
        found |= {n: hits(filtered, k) for n, (f, k) in asked.items() if f == "hits" and k}
    if families & {"recall", "ndcg"}:
        before = pairs.known_in_training if split == "val" else pairs.known_until_val
        most = max(k for f, k in asked.values() if f in ("recall", "ndcg") and k)
        among = first_ranks(scorer, pairs, queries, before, most)
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
