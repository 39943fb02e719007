"""Exact scores of predicted triples, in bounded memory, with ties counted as what they are.

A triple is ranked twice: its tail among all tails of its head and relation, and its head among all
heads. Other known triples are left out (filtered), in validation all but test triples. Candidates
are the nodes of the kind that the relation leads to.

    MRR      mean of 1 / rank
    Hits@K   share of ranks up to K

Candidates of one score are in random order: what is reported is the mean over these orders.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from vrgcn.graph.triples import KnownTriples, Triples
from vrgcn.pairs.decoders import Decoder
from vrgcn.pairs.ranking import ENTRIES, Ranks, hits, reciprocal_rank
from vrgcn.tasks.metrics import Metric


class TripleScorer(Protocol):
    """Scores triples."""

    def against(self, sources: Tensor, directions: Tensor) -> Tensor:
        """(queries, nodes) scores of some sources, in a direction each, with all nodes."""


class EmbeddedTriples:
    """Scores by a decoder and the embeddings of all nodes, (nodes, width)."""

    def __init__(self, decoder: Decoder, embeddings: Tensor) -> None:
        self.decoder = decoder
        self.z = embeddings

    @torch.no_grad()
    def score(self, triples: Tensor) -> Tensor:
        """(triples,) scores of (triples, 3) source, direction and target."""
        size = max(ENTRIES // (4 * self.z.shape[1]), 1)
        parts = [
            self.decoder(self.decoder.query(self.z[part[:, 0]], part[:, 1]), self.z[part[:, 2]])
            for part in triples.split(size)
        ]
        return torch.cat(parts) if parts else self.z.new_zeros(0)

    @torch.no_grad()
    def against(self, sources: Tensor, directions: Tensor) -> Tensor:
        query = self.decoder.query(self.z[sources], directions.to(self.z.device))
        return self.decoder.against(query, self.z)


class OneDirection:
    """Scores pairs of one direction, as the scorer of its triples does."""

    def __init__(self, scorer: EmbeddedTriples, triples: Triples, direction: int) -> None:
        self.scorer, self.direction = scorer, direction
        self.first, self.end = triples.spans[direction].tolist()

    def score(self, pairs: Tensor) -> Tensor:
        """(pairs,) scores of (pairs, 2)."""
        middle = torch.full_like(pairs[:, 0], self.direction)
        return self.scorer.score(torch.stack([pairs[:, 0], middle, pairs[:, 1]], dim=1))

    def against(self, sources: Tensor) -> Tensor:
        """(sources, targets) scores of some sources with all targets."""
        scores = self.scorer.against(sources, torch.full_like(sources, self.direction))
        return scores[:, self.first : self.end]


def ranks(scorer: TripleScorer, triples: Triples, queries: Tensor, known: KnownTriples) -> Ranks:
    """The places of the targets of `queries` (queries, 3) among the candidates of their source and
    direction.

    known: triples that are no candidates, but for the query's own
    """
    found = []
    for part in queries.split(max(ENTRIES // triples.num_nodes, 1)):
        sources, directions, own = part[:, 0], part[:, 1], part[:, 2:]
        scores = scorer.against(sources, directions).cpu()
        here = scores.gather(1, own)
        scores = candidates_alone(scores, triples, sources, directions, known).scatter_(
            1, own, here
        )
        found.append(((scores > here).sum(1), (scores == here).sum(1)))
    if not found:
        none = queries.new_zeros(0)
        return Ranks(none, none, none)
    greater, equal = (torch.cat(part) for part in zip(*found, strict=True))
    return Ranks(queries[:, 0], greater, equal)


def candidates_alone(
    scores: Tensor, triples: Triples, sources: Tensor, directions: Tensor, known: KnownTriples
) -> Tensor:
    """The scores (queries, nodes) with minus infinity, in place, for known triples and for nodes of
    another kind."""
    scores[known.partners(sources, directions)] = -torch.inf
    spans = triples.spans[directions]
    whole = torch.tensor([0, triples.num_nodes])
    if not bool((spans == whole).all()):
        nodes = torch.arange(triples.num_nodes)
        scores[(nodes < spans[:, :1]) | (nodes >= spans[:, 1:])] = -torch.inf
    return scores


# Scores of triples by name; the order is that of tables.
METRICS: dict[str, Metric] = {
    name: Metric(title)
    for name, title in {
        "mrr": "MRR",
        "hits@1": "Hits@1",
        "hits@3": "Hits@3",
        "hits@10": "Hits@10",
    }.items()
}


def score_triples(scorer: TripleScorer, triples: Triples, split: str) -> dict[str, float]:
    """The scores of a split's triples by name, over heads and tails."""
    queries = triples.both_ways(triples.split(split))
    known = triples.known_until_val if split == "val" else triples.known
    found = ranks(scorer, triples, queries, known)
    scores = {"mrr": reciprocal_rank(found, triples.num_nodes)}
    return scores | {f"hits@{k}": hits(found, k) for k in (1, 3, 10)}
