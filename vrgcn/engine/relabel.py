"""From node ids to places among the sources of a level, for one minibatch or several at a time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor

from vrgcn.graph.sparse import CSR, offsets


class Relabel:
    """The sources of a level are its targets, in order, then the other columns, ascending.

    Several relations share their sources: `edges` are of one relation each, (targets, nodes), and
    come back as (targets, sources).
    """

    def __init__(self, num_nodes: int) -> None:
        # The place of each node among the present sources. One array for all plans: clearing it
        # costs the size of the level, not of the graph.
        self._place = torch.full((num_nodes,), -1, dtype=torch.int64)

    def one(self, targets: Tensor, edges: Sequence[CSR]) -> tuple[Tensor, list[CSR]]:
        """The sources, and the edges among them."""
        columns = _joined(edges)
        if not len(columns):
            return targets, [e.with_columns(e.indices, len(targets)) for e in edges]
        place = self._place
        place.index_copy_(0, targets, torch.arange(len(targets)))
        others = torch.unique(columns[place.index_select(0, columns) < 0])
        sources = torch.cat([targets, others])
        place.index_copy_(0, others, torch.arange(len(targets), len(sources)))
        places = place.index_select(0, columns)
        place.index_fill_(0, sources, -1)
        return sources, _parted(edges, places, len(sources))

    def several(
        self, targets: Tensor, size: int, edges: Sequence[CSR]
    ) -> list[tuple[Tensor, list[CSR]]]:
        """The same for each run of `size` targets, which are all different."""
        batches, columns = targets.split(size), _joined(edges)
        if not len(columns):
            return [
                (part, [e.with_columns(e.indices, len(part)) for e in mine])
                for part, *mine in zip(batches, *(e.split(size) for e in edges), strict=True)
            ]
        nodes, place = len(self._place), self._place
        batch = torch.cat([_run_of_entry(e, size, len(batches)) for e in edges])

        place.index_copy_(0, targets, torch.arange(len(targets)))
        places = place.index_select(0, columns) - batch * size
        place.index_fill_(0, targets, -1)
        outside = ((places < 0) | (places >= size)).nonzero()[:, 0]

        # The others of all runs, run by run: sorted by run, then by node.
        key = (batch * nodes + columns).index_select(0, outside)
        key, other = torch.unique(key, return_inverse=True)
        run = torch.div(key, nodes, rounding_mode="floor")
        others = key - run * nodes
        starts = offsets(torch.bincount(run, minlength=len(batches)))
        sizes = torch.tensor([len(part) for part in batches])
        shift = (sizes - starts[:-1]).index_select(0, batch.index_select(0, outside))
        places.index_copy_(0, outside, other + shift)

        relabelled = _parted(edges, places, nodes)
        rows = zip(*(e.split(size) for e in relabelled), strict=True)
        found = []
        for part, mine, (a, b) in zip(batches, rows, pairwise(starts.tolist()), strict=True):
            sources = torch.cat([part, others[a:b]])
            found.append((sources, [e.with_columns(e.indices, len(sources)) for e in mine]))
        return found


def _joined(edges: Sequence[CSR]) -> Tensor:
    return edges[0].indices if len(edges) == 1 else torch.cat([e.indices for e in edges])


def _parted(edges: Sequence[CSR], places: Tensor, columns: int) -> list[CSR]:
    """The edges at new places (all entries,), those of each relation after the other's."""
    parts = places.split([e.num_entries for e in edges])
    return [e.with_columns(part, columns) for e, part in zip(edges, parts, strict=True)]


def _run_of_entry(edges: CSR, size: int, runs: int) -> Tensor:
    """(entries,) which run of `size` rows each entry is in."""
    ends = [*edges.indptr[:-1:size].tolist(), edges.num_entries]
    counts = torch.tensor([end - start for start, end in pairwise(ends)])
    return torch.repeat_interleave(torch.arange(runs), counts, output_size=edges.num_entries)
