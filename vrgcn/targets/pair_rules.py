"""Simple rules that score pairs without training, to stand beside every model. They see only
training pairs; validation pairs choose the settings of some (item_rules.py).

    popularity          how many training pairs the target has
    common neighbours   how many partners the two nodes share
    Adamic-Adar         the same, each shared partner counting 1 / log of its own number of partners
    repeat              whether the pair is a training pair, where scored pairs may be
    bought together     of pairs between two kinds: how often others who share a partner with the
                        source have the target, each shared partner counting once (three steps)
    graph filter        of pairs between two kinds: the same, each shared partner and each other
                        source counting less the more pairs it has (graph_filter.py)
    item neighbours, EASE, Turbo-CF   of pairs between two kinds: what a source's own pairs say of
                        each target, by one matrix between targets (item_rules.py)
    matrix factorisation   the best product of two narrow matrices for the training pairs, as wide
                        as the embeddings
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from vrgcn.graph.pairs import Pairs
from vrgcn.targets.factors import factors
from vrgcn.targets.graph_filter import GraphFilter, through_sources, training_matrix
from vrgcn.targets.item_rules import item_rules
from vrgcn.targets.ranking import ENTRIES, Rule, Scorer


class Popularity:
    """The number of training pairs of the target; of both nodes where pairs have no direction."""

    def __init__(self, pairs: Pairs) -> None:
        ends = pairs.train[:, 1] if pairs.directed else pairs.train.flatten()
        self.counts = torch.bincount(ends, minlength=pairs.num_nodes).float()
        self.targets = self.counts[pairs.targets.start : pairs.targets.stop]
        self.directed = pairs.directed

    def score(self, pairs: Tensor) -> Tensor:
        scores = self.counts[pairs[:, 1]]
        return scores if self.directed else scores * self.counts[pairs[:, 0]]

    def against(self, sources: Tensor, direction: int = 0) -> Tensor:
        return self.targets.expand(len(sources), -1).clone()


class SharedPartners:
    """A weighted count of the partners that two nodes share, whatever the direction of pairs.

    adamic: 1 / log of the partner's number of partners, in place of 1
    """

    def __init__(self, pairs: Pairs, *, adamic: bool) -> None:
        from scipy.sparse import coo_matrix, diags

        ends = pairs.train.numpy()
        both = np.concatenate([ends, ends[:, ::-1]])
        shape = (pairs.num_nodes, pairs.num_nodes)
        self.A: Any = coo_matrix((np.ones(len(both), np.float32), both.T), shape).tocsr()
        self.A.data[:] = 1  # where both directions were given
        degrees = np.asarray(self.A.sum(1)).ravel()
        weights = np.ones_like(degrees)
        if adamic:  # a shared partner has two partners at least
            weights = 1 / np.log(np.maximum(degrees, 2))
        self.weighted: Any = (self.A @ diags(weights.astype(np.float32))).tocsr()
        self.span = slice(pairs.targets.start, pairs.targets.stop)

    def score(self, pairs: Tensor) -> Tensor:
        found = [
            np.asarray(
                self.weighted[part[:, 0].numpy()].multiply(self.A[part[:, 1].numpy()]).sum(1)
            ).ravel()
            for part in pairs.split(ENTRIES >> 7)
        ]
        return torch.from_numpy(np.concatenate(found)).float()

    def against(self, sources: Tensor, direction: int = 0) -> Tensor:
        rows = self.weighted[sources.numpy()] @ self.A
        return torch.from_numpy(rows[:, self.span].toarray())


class BoughtTogether(Rule):
    """The number of ways from the source over a partner and another source to the target."""

    def __init__(self, pairs: Pairs) -> None:
        self.A: Any = training_matrix(pairs, pairs.train)
        self.back: Any = self.A.T.tocsr()
        self.edges, self.sources = pairs, pairs.sources

    def against(self, sources: Tensor, direction: int = 0) -> Tensor:
        rows = self.A[(sources - self.sources.start).numpy()]
        return torch.from_numpy(through_sources(rows, self.back))


class Repeat:
    """1 for a training pair, 0 for any other."""

    def __init__(self, pairs: Pairs) -> None:
        self.known = pairs.known_in_training
        self.targets = pairs.targets

    def score(self, pairs: Tensor) -> Tensor:
        return self.known.has(pairs[:, 0], pairs[:, 1]).float()

    def against(self, sources: Tensor, direction: int = 0) -> Tensor:
        rows, targets = self.known.partners(sources)
        scores = torch.zeros(len(sources), len(self.targets))
        scores[rows, targets - self.targets.start] = 1
        return scores


class MatrixFactorisation:
    """A truncated singular value decomposition of D⁻¼ A D⁻¼, A the training pairs and D the number
    of pairs of each node: the score of (u, v) is entry (u, v) of the best approximation of this
    rank, times D¼ of v. Neither A itself nor D⁻½ A D⁻½ is better on all of five real relations, by
    validation pairs.

    width: the rank; of small relations at most the number of sources or targets

    Found by subspace iteration from a fixed start: the same bits each time.
    """

    def __init__(self, pairs: Pairs, width: int) -> None:
        from scipy.sparse import diags

        train = pairs.train
        ends = train if pairs.directed else torch.cat([train, train.flip(1)])
        A = training_matrix(pairs, ends)
        A.data[:] = 1
        roots = [np.maximum(np.asarray(A.sum(side)).ravel(), 1) ** 0.25 for side in (1, 0)]
        scaled = (diags(1 / roots[0]) @ A @ diags(1 / roots[1])).astype(np.float32).tocsr()
        left, right = factors(scaled, min(width, *A.shape))
        self.left = torch.from_numpy(np.ascontiguousarray(left, np.float32))
        self.right = torch.from_numpy(np.ascontiguousarray(right * roots[1][:, None], np.float32))
        self.sources, self.targets = pairs.sources, pairs.targets

    def score(self, pairs: Tensor) -> Tensor:
        size = max(ENTRIES // self.left.shape[1], 1)
        parts = [
            (
                self.left[part[:, 0] - self.sources.start]
                * self.right[part[:, 1] - self.targets.start]
            ).sum(1)
            for part in pairs.split(size)
        ]
        return torch.cat(parts)

    def against(self, sources: Tensor, direction: int = 0) -> Tensor:
        return self.left[sources - self.sources.start] @ self.right.t()


class Rules(Mapping[str, Scorer]):
    """Rules by name, each computed when it is asked for and kept by nobody."""

    def __init__(self, made: Mapping[str, Callable[[], Scorer]]) -> None:
        self._made = made

    def __getitem__(self, name: str) -> Scorer:
        return self._made[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)


def simple_rules(pairs: Pairs, width: int = 64) -> Rules:
    """The rules that fit a relation, by name.

    width: of the embeddings of the model beside them
    """
    found: dict[str, Callable[[], Scorer]] = {"popularity": partial(Popularity, pairs)}
    if _repeats(pairs):
        found["repeat"] = partial(Repeat, pairs)
    if pairs.sources == pairs.targets:
        found["common neighbours"] = partial(SharedPartners, pairs, adamic=False)
        found["Adamic-Adar"] = partial(SharedPartners, pairs, adamic=True)
    else:
        found["bought together"] = partial(BoughtTogether, pairs)
        found["graph filter"] = partial(GraphFilter, pairs)
        found |= item_rules(pairs)
    found["matrix factorisation"] = partial(MatrixFactorisation, pairs, width)
    return Rules(found)


def _repeats(pairs: Pairs) -> bool:
    """Whether validation or test pairs are training pairs too: then a rule may say so again."""
    known = pairs.known_in_training
    return any(bool(known.has(part[:, 0], part[:, 1]).any()) for part in (pairs.val, pairs.test))
