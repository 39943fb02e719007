"""Forward-only sweeps over nodes in chunks, every neighbour read from a table.

Theorem 1 in action: a sweep over the nodes makes the first table exact; the next sweep the second;
and so on. Memory is one chunk and the tables, however deep the model and however large a node's
receptive field.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Protocol

import torch
from torch import Tensor, nn

from vrgcn.engine.forward import run_forward
from vrgcn.engine.history import Histories, History
from vrgcn.engine.node_rows import GraphRows
from vrgcn.engine.passes import PassEnded
from vrgcn.engine.plan import Relation
from vrgcn.engine.propagate import Propagate
from vrgcn.engine.trace import Trace, set_mode
from vrgcn.graph.propagation import Propagation, chunks, with_neighbours
from vrgcn.graph.relations import Schema
from vrgcn.graph.sparse import CSR, scale_rows


class AverageRows(Protocol):
    """Rows of P X."""

    def rows(self, nodes: Tensor, *, keep: bool) -> Tensor:
        """(len(nodes), features). keep: them for the next time, where they had to be computed"""


class SweepSource(Protocol):
    """What sweeps read of a model on a graph: a `Setup`, or a graph that changes. The parts are
    those of `Setup`."""

    @property
    def P(self) -> Mapping[Relation, Propagation]: ...  # noqa: N802

    @property
    def averages(self) -> Mapping[Relation, AverageRows]: ...

    @property
    def evaluation(self) -> Trace: ...

    @property
    def schema(self) -> Schema: ...

    @property
    def device(self) -> torch.device: ...

    def feature_rows(self, nodes: Tensor) -> Tensor: ...


# Rows of P without its diagonal for some nodes.
RowsOf = Callable[[Propagation, Tensor], CSR]


def rows_of(P: Propagation, nodes: Tensor) -> CSR:
    """All entries of these rows, whatever kind of matrix it is."""
    return P.rows(nodes)


@dataclass(frozen=True)
class Swept:
    """nodes: (chunk,); received: by level, what the model propagated; outputs: the model's, or None
    where the sweep stopped inside it"""

    nodes: Tensor
    received: list[Tensor]
    outputs: Tensor | None


def sweep(
    model: nn.Module,
    setup: SweepSource,
    nodes: Tensor,
    tables: Histories,
    *,
    stop: int | None = None,
    keep_averages: bool = False,
    rows: RowsOf = rows_of,
) -> Iterator[Swept]:
    """Run the model without dropout and gradients, neighbours read from the tables.

    stop: the level at which to end; its h is received and not propagated
    keep_averages: keep the rows of P X that are computed for the next sweep
    """
    for chunk in chunks(nodes, *setup.P.values()):
        # Not around the loop: the caller that takes the chunks would be in these modes too.
        with torch.no_grad(), set_mode(model, training=False, norms=False):
            swept = _forward(model, setup, chunk, tables, stop, keep_averages, rows)
        yield swept


def needed_nodes(setup: SweepSource, nodes: Tensor, stop: int | None = None) -> list[Tensor]:
    """The nodes of each sweep, first to last: each includes the neighbours of the next.

    stop: as in `sweep`
    """
    evaluation, needed = setup.evaluation, [nodes]
    last = evaluation.depth if stop is None else stop
    for _ in range(last - evaluation.first_table):
        needed.append(with_neighbours(needed[-1], *setup.P.values()))
    return needed[::-1]


def fill_tables(
    model: nn.Module,
    setup: SweepSource,
    needed: Sequence[Tensor],
    tables: Histories,
    *,
    step: int = 0,
    keep_averages: bool = False,
    on_chunk: Callable[[int], None] | None = None,
    on_table: Callable[[History], None] | None = None,
) -> None:
    """Make one table after the other exact for the model's present weights.

    needed: the nodes of each table, first to last: each includes the neighbours of the next
    on_table: called with each table when its rows are written, before any is read
    """
    for level, nodes in enumerate(needed, start=setup.evaluation.first_table):
        for swept in sweep(model, setup, nodes, tables, stop=level, keep_averages=keep_averages):
            h = swept.received[level]
            tables.table(level, h.shape[1]).write(swept.nodes.to(h.device), h, step)
            if on_chunk is not None:
                on_chunk(len(swept.nodes))
        if on_table is not None:
            on_table(tables.table(level, setup.evaluation.widths[level]))


def refresh_tables(
    model: nn.Module,
    setup: SweepSource,
    nodes: Tensor,
    tables: Histories,
    *,
    step: int,
    rows: RowsOf = rows_of,
) -> None:
    """Write all tables' rows of some nodes in one sweep, from the tables as they are."""
    first = setup.evaluation.first_table
    for swept in sweep(model, setup, nodes, tables, rows=rows):
        for level, h in enumerate(swept.received[first:], start=first):
            tables.table(level, h.shape[1]).write(swept.nodes.to(h.device), h, step)


def _forward(
    model: nn.Module,
    setup: SweepSource,
    chunk: Tensor,
    tables: Histories,
    stop: int | None,
    keep_averages: bool,
    rows: RowsOf,
) -> Swept:
    x = setup.feature_rows(chunk)
    received: list[Tensor] = []
    # A sweep that stops at the first table needs no row of P where P X is known.
    reached = cache(lambda over: _reached(setup.P[over], chunk))
    rows_over = cache(lambda over: rows(setup.P[over], reached(over)[1]).to(setup.device))

    def answer(level: int, over: Relation, h: Tensor) -> Tensor:
        if level == len(received):
            received.append(h)
        if level == stop:
            raise PassEnded
        if level < setup.evaluation.first_table:
            asked = reached(over)[1]
            return setup.averages[over].rows(asked, keep=keep_averages).to(setup.device)
        average = tables.table(level, h.shape[1]).average(rows_over(over), h.dtype)
        places, asked = reached(over)
        own = setup.P[over].own_rows(asked)
        if isinstance(own, Tensor):
            own = own.to(setup.device)
        elif own == 0:
            return average
        mine = h if places is None else h.index_select(0, places.to(h.device))
        return scale_rows(own, mine) + average

    outputs = None
    with suppress(PassEnded):
        levels = setup.evaluation.depth + 1
        nodes = GraphRows([chunk] * levels, setup.P, setup.device, setup.schema)
        propagate = Propagate([len(chunk)] * levels, answer, nodes)
        outputs = run_forward(model, x, propagate)
    return Swept(chunk, received, outputs)


def _reached(P: Propagation, nodes: Tensor) -> tuple[Tensor | None, Tensor]:
    """The places among the nodes that P is asked for, None for all, and these nodes."""
    places = P.reached(nodes)
    return places, nodes if places is None else nodes[places]
