"""Queries: a source and a direction, whose targets are to be found, and the loss of their answers.

A term of the loss is a training triple or its reverse: its query, and one true target. A
minibatch is some queries with all of their terms. Its queries share candidates: all nodes, or some
that are drawn anew for each minibatch. A candidate is a negative of a query unless it is one of its
training targets, or no node of the kind that the direction leads to.

    softmax    -log of the true target's share of exp s₊ + Σ exp s₋. Each negative counts as often
               as 1 / (expected number of times that it is drawn), so that the sum over the drawn
               ones is on average the sum over all
    logistic   -log σ(s₊) - the mean of log σ(-s₋)
    bpr        the mean of -log σ(s₊ - s₋)

The loss of an epoch is the mean over its terms. Validation and test triples are candidates like
any other: to leave them out would tell the model which they are.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from vrgcn.graph.sparse import offsets, slices
from vrgcn.graph.triples import Triples
from vrgcn.pairs.negatives import Sampling
from vrgcn.pairs.terms import PairLoss

_POWER = 0.75  # of the number of training triples, as word2vec draws words
_NONE = -1e9  # score of a candidate that is no negative: its exponential is 0


@dataclass(frozen=True, eq=False)
class Asked:
    """Some queries, their true targets, and candidates that they share.

    sources, directions: (queries,)
    rows: (terms,) the query of each term; targets: (terms,) its true target
    candidates: (candidates,); expected: (candidates,) how many times each is drawn on average
    no_negative: two (entries,), places of queries and of candidates that are none of its negatives
    """

    sources: Tensor
    directions: Tensor
    rows: Tensor
    targets: Tensor
    candidates: Tensor
    expected: Tensor
    no_negative: tuple[Tensor, Tensor]

    def __len__(self) -> int:
        return len(self.sources)

    @property
    def nodes(self) -> Tensor:
        """The different nodes whose embeddings are needed, ascending."""
        return torch.cat([self.sources, self.targets, self.candidates]).unique()

    def losses(self, loss: PairLoss, true: Tensor, scores: Tensor) -> Tensor:
        """(terms,) the loss of each.

        true: (terms,) scores of the true targets; scores: (queries, candidates)
        """
        rows, none = self.rows.to(true.device), [part.to(true.device) for part in self.no_negative]
        negative = torch.ones_like(scores).index_put(tuple(none), scores.new_zeros(()))
        scores = scores.index_put(tuple(none), scores.new_full((), _NONE))
        if loss == "softmax":
            weighed = scores - self.expected.to(scores).log()
            return F.softplus(weighed.logsumexp(1)[rows] - true)
        counts = negative.sum(1).clamp(min=1)
        if loss == "logistic":
            return F.softplus(-true) + (F.softplus(scores).sum(1) / counts)[rows]
        return F.softplus(scores[rows] - true[:, None]).sum(1) / counts[rows]


class QuerySource:
    """The queries of the training triples and their reverses, and their candidates.

    loss: one of the losses of pairs
    negatives: candidates of a minibatch; at least as many as there are nodes: all nodes
    sampling: how they are drawn; degree: by the number of training triples to the power 0.75, with
        replacement; uniform and shared: each node equally likely, without
    temperature: scores are divided by it
    cube_penalty: weight of the sums of cubes of embeddings (`Decoder.cubes`), see batches.py
    """

    def __init__(
        self,
        triples: Triples,
        loss: PairLoss,
        negatives: int,
        sampling: Sampling = "uniform",
        temperature: float = 1.0,
        cube_penalty: float = 0.0,
    ) -> None:
        self.triples = triples
        self.cube_penalty = cube_penalty
        self.loss = loss
        self.temperature = temperature
        self.negatives = min(negatives, triples.num_nodes)
        nodes = triples.num_nodes
        source, direction, target = triples.both_ways(triples.train.unique(dim=0)).unbind(1)
        order = torch.argsort((direction * nodes + source) * nodes + target)
        keys = (direction * nodes + source)[order]
        found, counts = torch.unique_consecutive(keys, return_counts=True)
        self.sources, self.directions = found % nodes, found // nodes
        self.targets, self.starts = target[order], offsets(counts)
        self._ends: Tensor | None = None
        if sampling == "degree" and self.negatives < nodes:
            powers = torch.bincount(target, minlength=nodes).double().pow(_POWER)
            self._ends, self._shares = powers.cumsum(0), powers / powers.sum()
        self._all = torch.arange(nodes)

    @property
    def queries(self) -> int:
        """Different queries: batch_size counts them."""
        return len(self.sources)

    @property
    def terms(self) -> int:
        """Terms in an epoch."""
        return len(self.targets)

    def triples_of(self, places: Tensor) -> Tensor:
        """(terms, 3) head, relation and tail of each term of some queries."""
        rows, terms = self._terms_of(places)
        sources, directions = self.sources[places[rows]], self.directions[places[rows]]
        targets = self.targets[terms]
        count = len(self.triples.relations)
        back = directions >= count
        heads, tails = torch.where(back, targets, sources), torch.where(back, sources, targets)
        return torch.stack([heads, directions % count, tails], dim=1)

    def losses(self, asked: Asked, true: Tensor, scores: Tensor) -> Tensor:
        """(terms,) the loss of each, from scores as a decoder gives them."""
        return asked.losses(self.loss, true / self.temperature, scores / self.temperature)

    def ask(self, places: Tensor, generator: torch.Generator) -> Asked:
        """Some of the queries, with candidates from the generator."""
        sources, directions = self.sources[places], self.directions[places]
        rows, terms = self._terms_of(places)
        targets = self.targets[terms]
        candidates, expected = self._candidates(generator)
        no_negative = self._no_negative(directions, rows, targets, candidates)
        return Asked(sources, directions, rows, targets, candidates, expected, no_negative)

    def _terms_of(self, places: Tensor) -> tuple[Tensor, Tensor]:
        first = self.starts[places]
        return slices(first, self.starts[places + 1] - first)

    def _candidates(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        count, nodes = self.negatives, self.triples.num_nodes
        if count == nodes:
            return self._all, torch.ones(nodes)
        if self._ends is None:
            drawn = torch.randperm(nodes, generator=generator)[:count].sort().values
            return drawn, torch.full((count,), count / nodes)
        place = torch.rand(count, dtype=torch.float64, generator=generator) * self._ends[-1]
        drawn = torch.searchsorted(self._ends, place, right=True).clamp_(max=nodes - 1)
        drawn = drawn.sort().values
        return drawn, (count * self._shares[drawn]).float()

    def _no_negative(
        self, directions: Tensor, rows: Tensor, targets: Tensor, candidates: Tensor
    ) -> tuple[Tensor, Tensor]:
        first = torch.searchsorted(candidates, targets)
        counts = torch.searchsorted(candidates, targets, right=True) - first
        terms, places = slices(first, counts)
        known = rows[terms]
        spans = self.triples.spans[directions]
        if bool((spans == torch.tensor([0, self.triples.num_nodes])).all()):
            return known, places
        outside = (candidates < spans[:, :1]) | (candidates >= spans[:, 1:])
        other = outside.nonzero(as_tuple=True)
        return torch.cat([known, other[0]]), torch.cat([places, other[1]])
