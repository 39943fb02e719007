"""A rule that recommends by filtering a source's own pairs over the graph, without training.

    s(u) = r (B + a D^-1/2 V Vᵀ D^1/2),   B = Tᵀ T,   T = C^-1/2 R D^-1/2

R are the training pairs, r the row of u, C and D the numbers of pairs of sources and of targets, V
the right singular vectors of T: GF-CF of Shen et al., "How powerful is graph convolution for
recommendation?". B is the average over targets that share sources, the other part an ideal low
pass. It has nothing to learn, and many networks that are trained for hours score less.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from vrgcn.graph.pairs import Pairs
from vrgcn.targets.factors import factors
from vrgcn.targets.ranking import ENTRIES, Rule

_WIDTH = 256  # singular vectors of the low pass, as published
_SHARE = 0.3  # a, as published


class GraphFilter(Rule):
    """GF-CF of a relation between two kinds.

    Memory: the training pairs twice, and _WIDTH numbers for each target. Scores are computed when
    they are asked for.
    """

    def __init__(self, pairs: Pairs) -> None:
        from scipy.sparse import diags

        R = training_matrix(pairs, pairs.train)
        R.data[:] = 1
        of_sources, of_targets = (np.maximum(np.asarray(R.sum(k)).ravel(), 1) for k in (1, 0))
        self.root = np.sqrt(of_targets).astype(np.float32)
        T = (diags(1 / np.sqrt(of_sources)) @ R @ diags(1 / self.root)).astype(np.float32)
        self.R: Any = R
        self.back: Any = T.T.tocsr()
        _, vectors = factors(T.tocsr(), min(_WIDTH, *R.shape))
        self.vectors = np.ascontiguousarray(vectors, np.float32)
        self.edges, self.sources = pairs, pairs.sources

    def against(self, sources: Tensor, direction: int = 0) -> Tensor:
        own = self.R[(sources - self.sources.start).numpy()]
        low = (own.multiply(1 / self.root).tocsr() @ self.vectors) @ self.vectors.T
        return torch.from_numpy(through_sources(own, self.back) + _SHARE * low * self.root)


def training_matrix(pairs: Pairs, ends: Tensor) -> Any:
    """(sources, targets) how often each pair is among `ends` (pairs, 2), in compressed rows."""
    from scipy.sparse import coo_matrix

    places = (ends - torch.tensor([pairs.sources.start, pairs.targets.start])).t().numpy()
    shape = (len(pairs.sources), len(pairs.targets))
    return coo_matrix((np.ones(len(ends), np.float32), tuple(places)), shape).tocsr()


def through_sources(own: Any, back: Any) -> Any:
    """(rows, targets) dense: own back backᵀ, in bounded memory.

    own: (rows, targets), back: (targets, sources), sparse matrices of SciPy
    """
    found = np.zeros(own.shape, np.float32)
    size = max(ENTRIES // max(back.shape[1], 1), 1)
    for first in range(0, own.shape[0], size):
        part = slice(first, first + size)
        shared = np.ascontiguousarray((own[part] @ back).toarray().T)
        found[part] = (back @ shared).T
    return found
