"""The halo: copies of the rows of other parts' nodes, and how they are kept up to date.

Rows are pushed, not pulled: the process that owns a node knows which processes have a copy of it.
Copies from one owner lie together, in an order that both know, so a row is sent only with its place
in that order (its slot).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor

from vrgcn.distributed.group import Arriving, Group
from vrgcn.distributed.parts import Part
from vrgcn.engine.history import History
from vrgcn.files.mistakes import InputError
from vrgcn.graph.sparse import CSR, offsets


@dataclass(frozen=True)
class Routes:
    """Rows to be sent, those for process 0 first.

    counts: rows for each process
    nodes: (rows,) our own nodes
    slots: (rows,) int32, the place of each copy among those that the process has from us
    """

    counts: list[int]
    nodes: Tensor
    slots: Tensor


class Halo:
    """Copies of other parts' nodes, and the routes to update them.

    own: number of nodes of the local graph that are its own; the others are copies
    group: the processes, one for each part
    """

    def __init__(self, part: Part, group: Group) -> None:
        if part.parts != group.size:
            raise InputError(
                f"the graph has {part.parts} parts, and there are {group.size} processes: start as "
                "many as there are parts"
            )
        self.group = group
        self.own = part.own
        self.nodes = part.graph.num_nodes
        self.numbers = part.nodes  # in the whole graph
        self.halo_indptr = part.halo_indptr
        self.send_indptr = part.send_indptr
        self.send_indices = part.send_indices
        self.send_counts = part.send_indptr.diff().tolist()
        self.halo_counts = part.halo_indptr.diff().tolist()
        # The places of an own node in `send_indices`: one for each process that copies it.
        order = torch.argsort(part.send_indices, stable=True)
        copies = torch.bincount(part.send_indices, minlength=part.own)
        self._copies = CSR(offsets(copies), order, None, len(order))

    def routes(self, nodes: Tensor) -> Routes:
        """Return the routes of rows of own nodes to the processes that have copies."""
        sent = self._copies.rows(nodes)
        target = torch.searchsorted(self.send_indptr, sent.indices, right=True) - 1
        order = torch.argsort(target, stable=True)
        place, target = sent.indices[order], target[order]
        counts = torch.bincount(target, minlength=self.group.size).tolist()
        slots = (place - self.send_indptr[target]).to(torch.int32)
        return Routes(counts, self.send_indices[place], slots)

    def homeward(self, nodes: Tensor) -> Routes:
        """Return the routes of rows of halo nodes, ascending, to their owners; slots are places
        among the rows that the owner sends us."""
        place = nodes - self.own
        owner = torch.searchsorted(self.halo_indptr, place, right=True) - 1
        counts = torch.bincount(owner, minlength=self.group.size).tolist()
        return Routes(counts, nodes, (place - self.halo_indptr[owner]).to(torch.int32))

    def places(self, slots: Tensor, coming: Sequence[int]) -> Tensor:
        """Return the local nodes (rows,) of the rows that arrived, by their slots. coming: rows
        from each process"""
        return slots.long() + self.own + _spread(self.halo_indptr, coming)

    def homes(self, slots: Tensor, coming: Sequence[int]) -> Tensor:
        """Return the own nodes (rows,) whose rows other processes computed and sent back."""
        return self.send_indices[slots.long() + _spread(self.send_indptr, coming)]

    def renew(self, rows: Tensor, what: str = "rows") -> None:
        """Copy the own rows of all processes to the copies: (local nodes, ...), in place."""
        rows[self.own :] = self._pushed(rows, what)

    def spread(self, flags: Tensor) -> Tensor:
        """Return (local nodes,) bool, with the owners' values for the halo."""
        known = flags.clone()
        self.renew(known, "flags")
        return known

    def _pushed(self, rows: Tensor, what: str) -> Tensor:
        sent = rows.index_select(0, self.send_indices.to(rows.device))
        flat = as_bytes(sent).to(self.group.device)
        came = self.group.exchange(flat, self.send_counts, self.halo_counts, what).rows()
        return from_bytes(came, rows).to(rows.device).reshape(-1, *rows.shape[1:])

    def difference(self, table: History, most: int) -> tuple[float, float]:
        """Return the squared distance of copies from the originals, and the squared norm of the
        originals, over at most `most` evenly spaced rows of each pair of processes."""
        send = [_some(count, most) for count in self.send_counts]
        here = [_some(count, most) for count in self.halo_counts]
        mine = torch.cat([s + a for s, a in zip(send, self.send_indptr.tolist(), strict=False)])
        copies = torch.cat([s + a for s, a in zip(here, self.halo_indptr.tolist(), strict=False)])
        values = table.values
        rows = values.index_select(0, self.send_indices[mine].to(values.device))
        flat = as_bytes(rows).to(self.group.device)
        came = self.group.exchange(flat, [*map(len, send)], [*map(len, here)], "measured").rows()
        now = from_bytes(came, values).to(values.device).double()
        held = values.index_select(0, (copies + self.own).to(values.device)).double()
        apart = float((held - now).square().sum())
        if table.frame is not None:  # the same in both
            now = table.frame.added(now, (copies + self.own).to(values.device))
        return apart, float(now.square().sum())


def pack(tables: Sequence[History], nodes: Tensor, slots: Tensor | None) -> Tensor:
    """Pack rows into bytes, (rows, bytes): the slot, then for each table the step at which the row
    was written and its values."""
    parts = [] if slots is None else [as_bytes(slots)]
    for table in tables:
        here = nodes.to(table.values.device)
        parts.append(as_bytes(table.written.index_select(0, here).to(torch.int32)).cpu())
        parts.append(as_bytes(table.values.index_select(0, here)).cpu())
    return torch.cat(parts, dim=1)


def unpack_integers(packed: Tensor) -> Tensor:
    """Return the slots (rows,) int32, the first four bytes of each row."""
    return from_bytes(packed[:, :4], torch.empty(0, dtype=torch.int32))[:, 0]


def unpack(
    tables: Sequence[History], nodes: Tensor, packed: Tensor, *, start: int, newer: bool = False
) -> None:
    """Write the rows that `pack` returned.

    start: 4 if slots come first, else 0
    newer: keep rows that were written later than those that arrived, such as rows computed here
    """
    for table in tables:
        width = table.values.shape[1] * table.values.element_size()
        here = nodes.to(table.values.device)
        written = unpack_integers(packed[:, start:])
        values = from_bytes(packed[:, start + 4 : start + 4 + width], table.values)
        start += 4 + width
        written, values = written.long().to(here.device), values.to(here.device)
        if newer:
            kept = written >= table.written.index_select(0, here)
            here, written, values = here[kept], written[kept], values[kept]
        table.written.index_copy_(0, here, written)
        table.values.index_copy_(0, here, values)


def packed_width(tables: Sequence[History]) -> int:
    """Return the bytes of a row, including its slot."""
    return 4 + sum(4 + t.values.shape[1] * t.values.element_size() for t in tables)


def send(group: Group, packed: Tensor, routes: Routes, coming: list[int]) -> Arriving:
    return group.exchange(packed.to(group.device), routes.counts, coming, wait=False)


def as_bytes(x: Tensor) -> Tensor:
    """View (rows, ...) as (rows, bytes), uint8."""
    return x.contiguous().reshape(len(x), prod(x.shape[1:])).view(torch.uint8)


def from_bytes(flat: Tensor, like: Tensor) -> Tensor:
    """Convert (rows, bytes) to (rows, width) in the type of another tensor."""
    # A copy: bytes at an unaligned place cannot be viewed as numbers.
    return flat.clone(memory_format=torch.contiguous_format).view(like.dtype)


def _spread(indptr: Tensor, coming: Sequence[int]) -> Tensor:
    return torch.repeat_interleave(indptr[:-1], torch.tensor(coming))


def _some(count: int, most: int) -> Tensor:
    return torch.linspace(0, count - 1, min(count, most), dtype=torch.float64).long()
