"""Simple rules that score pairs without training, to stand beside every model. They see training
pairs alone.

    popularity          how many training pairs the target has
    common neighbours   how many partners the two nodes share
    Adamic-Adar         the same, each shared partner counting 1 / log of its own number of partners
    bought together     of pairs between two kinds: how often others who share a partner with the
                        source have the target, each shared partner counting once (three steps)
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from vrgcn.graph.pairs import Pairs
from vrgcn.pairs.ranking import ENTRIES, Scorer


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

    def against(self, sources: Tensor) -> Tensor:
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

    def against(self, sources: Tensor) -> Tensor:
        rows = self.weighted[sources.numpy()] @ self.A
        return torch.from_numpy(rows[:, self.span].toarray())


class BoughtTogether:
    """The number of ways from the source over a partner and another source to the target."""

    def __init__(self, pairs: Pairs) -> None:
        from scipy.sparse import coo_matrix

        rows = (pairs.train[:, 0] - pairs.sources.start).numpy()
        columns = (pairs.train[:, 1] - pairs.targets.start).numpy()
        shape = (len(pairs.sources), len(pairs.targets))
        self.A: Any = coo_matrix((np.ones(len(rows), np.float32), (rows, columns)), shape).tocsr()
        self.sources, self.targets = pairs.sources, pairs.targets

    def score(self, pairs: Tensor) -> Tensor:
        size = max(ENTRIES // len(self.targets), 1)
        parts = [
            self.against(part[:, 0]).gather(1, part[:, 1:] - self.targets.start)[:, 0]
            for part in pairs.split(size)
        ]
        return torch.cat(parts)

    def against(self, sources: Tensor) -> Tensor:
        rows = self.A[(sources - self.sources.start).numpy()]
        return torch.from_numpy((rows @ self.A.T @ self.A).toarray())


def simple_rules(pairs: Pairs) -> dict[str, Scorer]:
    """The rules that fit a relation, by name."""
    found: dict[str, Scorer] = {"popularity": Popularity(pairs)}
    if pairs.sources == pairs.targets:
        found["common neighbours"] = SharedPartners(pairs, adamic=False)
        found["Adamic-Adar"] = SharedPartners(pairs, adamic=True)
    else:
        found["bought together"] = BoughtTogether(pairs)
    return found
