"""Columns that were made of the predicted edges, such as the number of orders of a user.

Such a column counts validation and test pairs too. The question is asked as a partial correlation:
what a column and the number of a node's pairs (or its logarithm) have in common beyond the number
of its training pairs. A column made of training pairs has nothing, popularity that was known before
has little, a count of all pairs has everything. Both halves of the nodes must show it: a column of
many categories fits a few busy nodes by chance.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vrgcn.files.setting_names import setting
from vrgcn.graph.graph import Graph
from vrgcn.leaks.columns import dense_features, dense_width, rows_within, sample
from vrgcn.leaks.finding import Budget, Finding
from vrgcn.leaks.skill import halves

CORRELATION, CERTAIN = 0.8, 0.95
_LEAST = 40  # nodes with and without held-out pairs
_NODES = 50_000

Floats = NDArray[np.float64]


def columns_made_of_pairs(graph: Graph, budget: Budget) -> Iterator[Finding]:
    """Find columns that know how many validation and test pairs a node has."""
    pairs = graph.pairs
    if pairs is None or not (len(pairs.val) or len(pairs.test)):
        return
    held = torch.cat([pairs.val, pairs.test])
    ends: dict[str, tuple[range, Tensor, Tensor]] = {}
    for end, kind in enumerate(pairs.kinds):
        span = pairs.targets if end else pairs.sources
        trained, later = (
            torch.bincount(part[:, end], minlength=graph.num_nodes) for part in (pairs.train, held)
        )
        if kind in ends and not kind:  # both ends of nodes without kinds count together
            trained, later = trained + ends[kind][1], later + ends[kind][2]
        ends[kind] = span, trained, later
    for kind, (span, trained, later) in ends.items():
        most = min(_NODES, rows_within(budget.cells, dense_width(graph, kind)))
        nodes = sample(torch.arange(span.start, span.stop), most)
        if len(nodes) < _LEAST or not later[nodes].any():
            continue
        before, after = (part[nodes].double().numpy() for part in (trained, trained + later))
        best: dict[str, float] = {}
        for feature in dense_features(graph, kind, nodes):
            correlation = max(
                _in_both_halves(feature.values, change(after), change(before))
                for change in (np.asarray, np.log1p)
            )
            best[feature.column] = max(correlation, best.get(feature.column, 0.0))
        for column, correlation in best.items():
            if correlation >= CORRELATION:
                yield Finding(
                    "high" if correlation >= CERTAIN else "medium",
                    "made of pairs",
                    f"column {column!r} may have been made of all pairs: it tells how many "
                    f"validation and test pairs of {pairs.relation} a node has, a partial "
                    f"correlation of {correlation:.2f} or more in both halves of the nodes",
                    "if so, make it of training pairs only, or import the table without it, "
                    f" {setting('drop', column, command='import')}",
                )


def _in_both_halves(column: Floats, later: Floats, trained: Floats) -> float:
    """The lesser of the partial correlations in two random halves of the nodes; 0 if their signs
    differ."""
    half = halves(len(column))
    one, other = (_partial(column[own], later[own], trained[own]) for own in (half, ~half))
    return min(abs(one), abs(other)) if one * other > 0 else 0.0


def _partial(column: Floats, later: Floats, trained: Floats) -> float:
    """Correlation of a column and the counts of all pairs, those of training pairs held fixed."""
    basis = np.stack([np.ones_like(trained), trained], axis=1)
    rest = [
        values - basis @ np.linalg.lstsq(basis, values, rcond=None)[0] for values in (column, later)
    ]
    lengths = [float(np.linalg.norm(part)) for part in rest]
    scale = [float(np.linalg.norm(values - values.mean())) for values in (column, later)]
    if any(length <= 1e-9 * max(size, 1e-300) for length, size in zip(lengths, scale, strict=True)):
        return 0.0
    return float(rest[0] @ rest[1]) / (lengths[0] * lengths[1])
