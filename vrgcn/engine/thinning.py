"""Rows of P thinned out at random, for histories of nodes with very many neighbours.

The paper's footnote on very high degrees: average the histories of some neighbours only.
"""

from __future__ import annotations

import torch
from torch import Tensor

from vrgcn.graph.propagation import Propagation
from vrgcn.graph.sparse import CSR, offsets


def history_rows(
    P: Propagation, targets: Tensor, most: int | None, generator: torch.Generator
) -> CSR:
    """Rows of P without its diagonal for the history average: (targets, nodes).

    most: thin rows with more entries than this; None: never
    """
    return P.rows(targets) if most is None else thinned(P, targets, most, generator)


def thinned(P: Propagation, targets: Tensor, most: int, generator: torch.Generator) -> CSR:
    """Rows of P's neighbours with at most `most` entries each, whose mean is the whole row.

    A longer row is cut into `most` runs, as equal as can be; one entry is drawn from each and
    weighted by the run's length. Unlike the sampler `uniform`, whose draws are compared pair by
    pair, it costs no more than the entries it answers with, so `most` may be in the thousands.
    """
    start = P.adjacency.indptr.index_select(0, targets)
    degree = P.degrees(targets)
    count = degree.clamp(max=most)
    indptr = offsets(count)
    total = int(indptr[-1])
    row = torch.repeat_interleave(torch.arange(len(targets)), count, output_size=total)
    run = torch.arange(total) - indptr[row]
    first = run * degree[row] // count[row]
    length = (run + 1) * degree[row] // count[row] - first
    uniforms = torch.rand(total, dtype=torch.float64, generator=generator)
    rows = P.take(targets, indptr, start[row] + first + (uniforms * length).long())
    values = length.to(P.dtype) if rows.values is None else rows.values * length
    return CSR(indptr, rows.indices, values, rows.columns, rows.scale)
