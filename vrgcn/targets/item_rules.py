"""Rules that recommend by one matrix between targets, in closed form.

    s(u) = r B

r is the row of u in the training pairs R; C and D are the numbers of pairs of sources and targets.

    item neighbours   B = D^-1/2 Rᵀ R D^-1/2, of which each target keeps its k nearest others
    EASE              B = I - Q diag(Q)^-1, Q = (Rᵀ R + λ I)^-1: each target is predicted by ridge
                      regression from all others (Steck, 2019)
    Turbo-CF          B = P or 2 P - P P, P the entries of T Tᵀ to the power s,
                      T = D^(a-1) Rᵀ C^-a (Park et al., 2024)

k, λ, a, s and the polynomial are chosen by NDCG@20 on the validation pairs of some sources, and are
usual ones if there are no validation pairs.

Memory: item neighbours keep k numbers for each target. EASE keeps the targets' number squared, and
needs three times that in double precision: it is a rule of at most _DENSE targets. Turbo-CF keeps
as many in single precision, or, of more targets, the entries of Rᵀ R that are not 0, if these are
at most _ENTRIES; it is B = P then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import product
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from vrgcn.graph.pairs import Pairs
from vrgcn.targets.graph_filter import training_matrix
from vrgcn.targets.ranking import ENTRIES, Rule, score_edges

T = TypeVar("T")

_DENSE = 6_000  # targets of which a dense matrix is kept: 144 MB, and 860 MB while EASE is solved
_ENTRIES = 150_000_000  # numbers of a sparse matrix at most: 1.2 GB
_SOURCES = 1_000  # sources whose validation pairs choose settings
_NEAREST = (50, 20, 100, 200)  # the usual setting comes first, here and below
_RIDGES = (300.0, 100.0, 30.0, 1000.0, 10.0)
_SHARES, _POWERS, _DEGREES = (0.6, 0.5), (1.0, 0.7, 1.4), (1, 2)


class ItemRule(Rule):
    """s(u) = r B. R, B: a matrix of SciPy in compressed rows, and one of SciPy or NumPy

    setting: that was chosen
    """

    setting: Any = None

    def __init__(self, pairs: Pairs, R: Any, B: Any) -> None:
        self.edges, self.first, self.R, self.B = pairs, pairs.sources.start, R, B

    def against(self, sources: Tensor, direction: int = 0) -> Tensor:
        return torch.from_numpy(_product(self.R[(sources - self.first).numpy()], self.B))


class TwoSteps(ItemRule):
    """s(u) = r (2 B - B B)."""

    def against(self, sources: Tensor, direction: int = 0) -> Tensor:
        once = super().against(sources, direction)
        return 2 * once - once @ torch.from_numpy(self.B)


def item_neighbours(pairs: Pairs, settings: Sequence[int] = _NEAREST) -> ItemRule:
    """Return the rule of nearest targets by the cosine of their columns of R.

    settings: k
    """
    R = _binary(pairs)
    values, places = _nearest(_scaled(R, 0.0, 0.5), min(max(*settings, *_NEAREST), R.shape[1]))

    def made(k: int) -> ItemRule:
        return ItemRule(pairs, R, _columns_of(values[:, :k], places[:, :k]))

    return _best(pairs, settings, made)


def ease(pairs: Pairs, settings: Sequence[float] = _RIDGES) -> ItemRule:
    """Return the ridge regression of each target on all others. settings: λ"""
    R = _binary(pairs)
    G = (R.T @ R).toarray().astype(np.float64)
    return _best(pairs, settings, lambda ridge: ItemRule(pairs, R, _regressed(G, ridge)))


def turbo_cf(pairs: Pairs, settings: Sequence[tuple[float, float, int]] | None = None) -> ItemRule:
    """Return the polynomial filter of the graph of targets.

    settings: a, s and the degree of the polynomial
    """
    R = _binary(pairs)
    dense = R.shape[1] <= _DENSE
    if settings is None:
        settings = [*product(_SHARES, _POWERS, _DEGREES if dense else _DEGREES[:1])]

    @lru_cache(1)
    def of_share(share: float) -> Any:
        scaled = _scaled(R, share, 1 - share)
        P = scaled.T @ scaled
        return P.toarray() if dense else P.tocsr()

    @lru_cache(1)
    def powered(share: float, power: float) -> Any:
        return _to_the_power(of_share(share), power)

    def made(setting: tuple[float, float, int]) -> ItemRule:
        *of_matrix, degree = setting
        return (TwoSteps if degree == 2 else ItemRule)(pairs, R, powered(*of_matrix))

    return _best(pairs, settings, made)


def item_rules(pairs: Pairs) -> dict[str, Callable[..., ItemRule]]:
    """The rules that a relation between two kinds is not too large for, by name; `settings` are
    those of the functions above."""
    ways = torch.bincount(pairs.train[:, 0]).double().square().sum()  # entries of Rᵀ R at most
    small = len(pairs.targets) <= _DENSE
    found: dict[str, Callable[..., ItemRule]] = {"item neighbours": partial(item_neighbours, pairs)}
    if small:
        found["EASE"] = partial(ease, pairs)
    if small or ways <= _ENTRIES:
        found["Turbo-CF"] = partial(turbo_cf, pairs)
    return found


def _best(pairs: Pairs, settings: Sequence[T], make: Callable[[T], ItemRule]) -> ItemRule:
    """The rule with the best NDCG@20 on validation pairs; of the first setting without them."""
    if not len(pairs.val):
        settings = settings[:1]
    some, best, highest = _some(pairs), None, -1.0
    for setting in settings:
        rule, score = make(setting), 0.0
        rule.setting = setting
        if len(settings) > 1:
            score = score_edges(rule, some, "val", ("ndcg@20",))["ndcg@20"]
        if score > highest:
            best, highest = rule, score
    assert best is not None
    return best


def _some(pairs: Pairs) -> Pairs:
    """Pairs whose validation pairs are those of some sources."""
    sources = pairs.val[:, 0].unique()
    order = torch.randperm(len(sources), generator=torch.Generator().manual_seed(0))
    kept = torch.isin(pairs.val[:, 0], sources[order[:_SOURCES]])
    return replace(pairs, val=pairs.val[kept])


def _binary(pairs: Pairs) -> Any:
    """(sources, targets): 1 for each training pair."""
    R = training_matrix(pairs, pairs.train)
    R.data[:] = 1
    return R


def _scaled(R: Any, of_sources: float, of_targets: float) -> Any:
    """R with rows and columns divided by powers of their numbers of pairs."""
    from scipy.sparse import diags

    rows, columns = (np.maximum(np.asarray(R.sum(k)).ravel(), 1) for k in (1, 0))
    scaled = diags(rows**-of_sources) @ R @ diags(columns**-of_targets)
    return scaled.astype(np.float32).tocsr()


def _product(rows: Any, B: Any) -> Any:
    """(rows, targets) dense."""
    found = rows @ B
    return np.ascontiguousarray(found if isinstance(found, np.ndarray) else found.toarray())


def _nearest(scaled: Any, most: int) -> tuple[Tensor, Tensor]:
    """(targets, most) the largest entries of the rows of scaledᵀ scaled outside the diagonal, and
    their columns."""
    back = scaled.T.tocsr()
    count = back.shape[0]
    values, places = [], []
    for part in torch.arange(count).split(max(ENTRIES // max(count, 1), 1)):
        near = torch.from_numpy((back[part.numpy()] @ scaled).toarray())
        near[torch.arange(len(part)), part] = 0
        top = near.topk(most)
        values.append(top.values)
        places.append(top.indices)
    return torch.cat(values), torch.cat(places)


def _columns_of(values: Tensor, places: Tensor) -> Any:
    """B, (targets, targets), whose column v has values[v] in the rows places[v]."""
    from scipy.sparse import csc_matrix

    count, kept = values.shape
    starts = np.arange(0, count * kept + 1, kept)
    flat = (values.reshape(-1).numpy(), places.reshape(-1).numpy(), starts)
    return csc_matrix(flat, (count, count)).tocsr()


def _regressed(G: Any, ridge: float) -> Any:
    """I - Q diag(Q)^-1, Q = (G + ridge I)^-1."""
    L = torch.linalg.cholesky(torch.from_numpy(G) + ridge * torch.eye(len(G), dtype=torch.float64))
    Q = torch.cholesky_inverse(L)
    B = -Q / Q.diagonal()
    return B.fill_diagonal_(0).float().numpy()


def _to_the_power(P: Any, power: float) -> Any:
    if power == 1:
        return P
    if isinstance(P, np.ndarray):
        return P**power
    raised = P.copy()
    raised.data **= power
    return raised
