"""Histories of own nodes and copies of the halo's, exchanged while processes train.

`exact`: if a step writes the minibatch's rows before any is averaged, in either direction, they go
to all copies at once, level by level; rows written after the step are sent then. So the tables of
all processes equal those of one process that trains on the union of their minibatches.

Where tables have a moving frame (engine/frame.py), its move D is the same in all processes: each
step adds up, for each table, what D is the mean of, before rows are written; that is
one small sum over the processes for each table, with either halo.

`delayed`: rows that a step writes are sent after it, for all tables together, during the next step,
and arrive before the rows of that one are sent: a copy is one step older than the original, or k
steps if rows are sent every k steps. Rows on their way are part of the state.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from vrgcn.distributed.group import Arriving
from vrgcn.distributed.halo import (
    Halo,
    Routes,
    pack,
    packed_width,
    send,
    unpack,
    unpack_integers,
)
from vrgcn.engine.batch import Batch
from vrgcn.engine.frame import Frame
from vrgcn.engine.history import NEVER, Histories, History, Replaced

NUMBERS = "halo.numbers"  # numbers of own nodes in the whole graph
_PENDING, _ARRIVED, _COMING, _OF = "halo.pending", "halo.arrived", "halo.coming", "halo.of"


@dataclass(frozen=True)
class _Step:
    """Routes of an exact step: the processes that our rows go to, and the rows that come."""

    routes: Routes
    coming: list[int]
    places: Tensor


class HaloHistory(History):
    """A table whose rows go to all copies if a step writes them before it averages any."""

    def __init__(
        self, values: Tensor, written: Tensor, frame: Frame | None, histories: HaloHistories
    ) -> None:
        super().__init__(values, written, frame)
        self._histories = histories

    def _move(self, frame: Frame, h: Tensor, values: Tensor, here: Tensor) -> None:
        frame.advance(*self._histories.of_all(*frame.sums(h, values, here)))

    def replace(self, nodes: Tensor, h: Tensor, step: int) -> Replaced:
        before = super().replace(nodes, h, step)
        self._histories.replaced(self)
        return before


class HaloHistories(Histories):
    """Histories with copies in other processes.

    halo: which processes have copies of which rows; exact: see above; every: steps between sendings
    """

    def __init__(
        self,
        num_nodes: int,
        dtype: str,
        device: torch.device,
        halo: Halo,
        *,
        exact: bool,
        every: int = 1,
    ) -> None:
        super().__init__(num_nodes, dtype, device)
        self.halo = halo
        self.exact = exact
        self.every = every
        self.wishes = 0  # our bits, which all processes learn; see `agreed`
        self.agreed = 0  # the bits that any process set when the step began
        self._step: _Step | None = None
        self._pending = torch.zeros(halo.own, dtype=torch.bool)
        self._routes: Routes | None = None
        self._counts: Arriving | None = None
        self._arriving: Arriving | None = None
        self._arriving_of: list[tuple[int, str]] = []  # tables whose rows are on their way

    def make(self, values: Tensor, written: Tensor, frame: Frame | None) -> History:
        return HaloHistory(values, written, frame, self)

    def begin(self, batch: Batch, step: int) -> None:
        """Before the step: tell all processes how many rows will come."""
        if self.exact:
            self._begin_exact(batch)
            return
        self._pending[_own(batch.plan.levels[0].nodes, self.halo)] = True
        self._routes = Routes([0] * self.halo.group.size, *_nothing())
        if (step + 1) % self.every == 0:
            self._routes = self.halo.routes(self._pending.nonzero()[:, 0])
            self._pending.zero_()
        self._counts = self.halo.group.start_counts(self._announced(self._routes.counts))

    def end(self, batch: Batch, *, gradients: bool, samples: bool) -> None:
        """After the step: send the rows that it wrote.

        gradients: True if the minibatch's rows are written before they are averaged
        samples: True if neighbours' rows are computed and written too
        """
        if not self.exact:
            self._end_delayed()
        elif samples:
            self._end_sampled(batch, gradients=gradients)
        elif not gradients:
            self._send_step([self.tables[key] for key in sorted(self.tables)])
        self._step = None

    def of_all(self, total: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
        """Sum what a frame is the mean of over all processes, inside a step: D is the same
        everywhere, so rows that travel stay right, however late they arrive."""
        if self._step is None and self._routes is None:
            return total, count
        both = torch.cat([total, count], 1).to(self.halo.group.device)
        both = self.halo.group.sum(both, "moves").to(total.device)
        return both[:, :-1], both[:, -1:]

    def replaced(self, table: History) -> None:
        """Called when a table has the minibatch's new rows and is about to be averaged."""
        if self._step is not None:
            self._send_step([table])

    def renew(self) -> None:
        """Set all copies to the originals."""
        for key in sorted(self.tables):
            table = self.tables[key]
            self.halo.renew(table.values)
            self.halo.renew(table.written)

    def ages(self, step: int) -> tuple[Tensor, Tensor]:
        """Return the sum and number of the ages of written rows: (2,) of own nodes, (2,) of
        copies."""
        sums = torch.zeros(2, 2, dtype=torch.float64)
        for table in self.tables.values():
            for row, rows in enumerate(
                (table.written[: self.halo.own], table.written[self.halo.own :])
            ):
                known = rows[rows != NEVER].double()
                sums[row] += torch.tensor([float((step - known).sum()), len(known)])
        return sums[0], sums[1]

    def staleness(self, most: int = 256) -> float | None:
        """Return √(Σ ‖copy - original‖² / Σ ‖original‖²) over some rows of all tables and
        processes."""
        apart = norm = 0.0
        for key in sorted(self.tables):
            difference = self.halo.difference(self.tables[key], most)
            apart, norm = apart + difference[0], norm + difference[1]
        apart, norm = self.halo.group.total(apart, norm)
        return (apart / norm) ** 0.5 if norm else None

    def state_dict(self) -> dict[str, Tensor]:
        state = super().state_dict()
        state[NUMBERS] = self.halo.numbers[: self.halo.own]
        if not self.exact and self.tables:
            arriving = self._arriving
            state[_PENDING] = self._pending
            if arriving is not None:
                state[_ARRIVED] = arriving.rows().cpu()
                state[_COMING] = torch.tensor(arriving.coming)
                keys = sorted(self.tables)
                state[_OF] = torch.tensor([keys.index(key) for key in self._arriving_of])
        return state

    def tables_of(self, state: dict[str, Tensor]) -> dict[str, Tensor]:
        return {name: value for name, value in state.items() if not name.startswith("halo.")}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        super().load_state_dict(self.tables_of(state))
        self._arriving = None
        if _PENDING in state:
            self._pending = state[_PENDING].clone()
        if _ARRIVED in state:
            rows, coming = state[_ARRIVED].clone(), state[_COMING].tolist()
            self._arriving = Arriving(self.halo.group, rows, coming, None, None)
            keys = sorted(self.tables)
            self._arriving_of = [keys[place] for place in state[_OF].tolist()]
        if self.exact and _PENDING in state:  # from a run that sent its rows later
            self._arriving = None
            self._pending.zero_()
            self.renew()

    def _announced(self, counts: list[int]) -> Tensor:
        numbers = torch.tensor(counts, dtype=torch.int64)
        return torch.stack([numbers, torch.full_like(numbers, self.wishes)], 1)

    def _agree(self, came: Tensor) -> list[int]:
        """Return the rows that come from each process, and record the bits that any process set."""
        self.agreed = 0
        for wish in came[:, 1].tolist():
            self.agreed |= int(wish)
        return [int(count) for count in came[:, 0].tolist()]

    def _begin_exact(self, batch: Batch) -> None:
        routes, group = self.halo.routes(batch.nodes), self.halo.group
        coming = self._agree(group.counts(self._announced(routes.counts)))
        slots = group.exchange(routes.slots.to(group.device), routes.counts, coming, "slots")
        places = self.halo.places(slots.rows().cpu(), coming)
        self._step = _Step(routes, coming, places)
        batch.elsewhere = torch.zeros(self.num_nodes, dtype=torch.bool, device=self.device)
        batch.elsewhere[places.to(self.device)] = True

    def _send_step(self, tables: list[History]) -> None:
        """Send the minibatches' rows of some tables."""
        assert self._step is not None
        step = self._step
        packed = pack(tables, step.routes.nodes, None)
        came = send(self.halo.group, packed, step.routes, step.coming).rows().cpu()
        unpack(tables, step.places, came, start=0)

    def _end_sampled(self, batch: Batch, *, gradients: bool) -> None:
        """Send rows computed for nodes outside all minibatches to their owners first, which send
        them to all copies."""
        for level, plan in enumerate(batch.plan.levels):
            table = self.tables.get((level, "h"))
            if table is None:
                continue
            nodes = plan.nodes.cpu()[len(batch.nodes) if gradients else 0 :]
            away, _ = torch.sort(nodes[nodes >= self.halo.own])
            if batch.elsewhere is not None:
                away = away[~batch.elsewhere.cpu()[away]]
            routes = self.halo.homeward(away)
            came, coming = self._sent_now([table], routes)
            homes = self.halo.homes(unpack_integers(came), coming)
            unpack([table], homes, came, start=4)
            written = torch.unique(torch.cat([_own(nodes, self.halo), homes]))
            came, coming = self._sent_now([table], self.halo.routes(written))
            unpack([table], self.halo.places(unpack_integers(came), coming), came, start=4)

    def _sent_now(self, tables: list[History], routes: Routes) -> tuple[Tensor, list[int]]:
        group = self.halo.group
        coming = group.counts(torch.tensor(routes.counts)[:, None])[:, 0].tolist()
        packed = pack(tables, routes.nodes, routes.slots)
        return send(group, packed, routes, coming).rows().cpu(), coming

    def _end_delayed(self) -> None:
        assert self._routes is not None
        assert self._counts is not None
        self.settle()
        coming = self._agree(self._counts.rows().cpu())
        self._arriving_of = sorted(self.tables)
        tables = [self.tables[key] for key in self._arriving_of]
        packed = pack(tables, self._routes.nodes, self._routes.slots)
        self._arriving = send(self.halo.group, packed, self._routes, coming)
        self._routes = self._counts = None

    def settle(self) -> None:
        """Write the rows that were sent last and have arrived."""
        if self._arriving is None:
            return
        tables = [self.tables[key] for key in self._arriving_of]
        came = self._arriving.rows().cpu().reshape(-1, packed_width(tables))
        places = self.halo.places(unpack_integers(came), self._arriving.coming)
        unpack(tables, places, came, start=4, newer=True)
        self._arriving = None


def _own(nodes: Tensor, halo: Halo) -> Tensor:
    nodes = nodes.cpu()
    return nodes[nodes < halo.own]


def _nothing() -> tuple[Tensor, Tensor]:
    return torch.empty(0, dtype=torch.int64), torch.empty(0, dtype=torch.int32)
