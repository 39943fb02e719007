"""From node ids to places among the sources of a hop, for one minibatch or several at a time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from vrgcn.graph.sparse import CSR, offsets


class Relabelled(NamedTuple):
    """The sources of a hop, its edges, and what Hop.again and Hop.apart are."""

    sources: Tensor
    edges: CSR
    again: Tensor
    apart: Tensor


class Relabel:
    """The sources of a hop are its targets, in order, then the other columns, ascending."""

    def __init__(self, num_nodes: int) -> None:
        # Where each node stands among the sources of the hop at hand. One array for all plans:
        # clearing it costs the size of the hop, not of the graph.
        self._place = torch.full((num_nodes,), -1, dtype=torch.int64)

    def one(self, targets: Tensor, edges: CSR) -> tuple[Tensor, CSR]:
        """The sources, and the edges (targets, nodes) among them."""
        if not edges.num_entries:
            return targets, edges.with_columns(len(targets))
        place = self._place
        place.index_copy_(0, targets, torch.arange(len(targets)))
        others = torch.unique(edges.indices[place.index_select(0, edges.indices) < 0])
        sources = torch.cat([targets, others])
        place.index_copy_(0, others, torch.arange(len(targets), len(sources)))
        indices = place.index_select(0, edges.indices)
        place.index_fill_(0, sources, -1)
        return sources, CSR(edges.indptr, indices, edges.values, len(sources))

    def several(self, targets: Tensor, size: int, edges: CSR) -> Iterator[Relabelled]:
        """The same for each run of `size` targets, which are all different."""
        batches = targets.split(size)
        if not edges.num_entries:
            for part, mine in zip(batches, edges.split(size), strict=True):
                yield Relabelled(part, mine.with_columns(len(part)), mine.indices, mine.indices)
            return
        nodes, place = len(self._place), self._place
        ends = [*edges.indptr[:-1:size].tolist(), edges.num_entries]
        entries = torch.tensor([end - start for start, end in pairwise(ends)])
        batch = torch.repeat_interleave(torch.arange(len(batches)), entries)

        place.index_copy_(0, targets, torch.arange(len(targets)))
        places = place.index_select(0, edges.indices) - batch * size
        place.index_fill_(0, targets, -1)
        inside = (places >= 0) & (places < size)
        outside, again = (~inside).nonzero()[:, 0], inside.nonzero()[:, 0]

        # The others of all runs, run by run: sorted by run, then by node.
        key = (batch * nodes + edges.indices).index_select(0, outside)
        key, other = torch.unique(key, return_inverse=True)
        run = torch.div(key, nodes, rounding_mode="floor")
        others = key - run * nodes
        starts = offsets(torch.bincount(run, minlength=len(batches)))
        sizes = torch.tensor([len(part) for part in batches])
        shift = (sizes - starts[:-1]).index_select(0, batch.index_select(0, outside))
        places.index_copy_(0, outside, other + shift)

        # Hop.again and Hop.apart of all runs.
        owner = batch.index_select(0, again)
        firsts = offsets(torch.bincount(owner, minlength=len(batches)))
        apart = places - sizes.index_select(0, batch)
        more = starts.diff() - firsts[:-1]
        apart.index_copy_(0, again, torch.arange(len(again)) + more.index_select(0, owner))
        again = again - torch.tensor(ends[:-1]).index_select(0, owner)

        rows = CSR(edges.indptr, places, edges.values, nodes).split(size)
        parts = zip(
            batches,
            rows,
            pairwise(starts.tolist()),
            pairwise(firsts.tolist()),
            pairwise(ends),
            strict=True,
        )
        for part, mine, (a, b), (c, d), (e, f) in parts:
            sources = torch.cat([part, others[a:b]])
            yield Relabelled(sources, mine.with_columns(len(sources)), again[c:d], apart[e:f])
