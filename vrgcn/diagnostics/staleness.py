"""How old the histories are that a minibatch reads, and how far from the present activations."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from vrgcn.diagnostics.recorder import Recorder
from vrgcn.engine.history import NEVER
from vrgcn.engine.minibatches import MiniBatches
from vrgcn.training.gradients import frozen


@dataclass(frozen=True)
class Staleness:
    """One table, at the rows that the exact computation of one minibatch uses.

    call: the call of `propagate` whose input it keeps, from 0
    age: (rows,) steps since the row was written, NEVER where it was not
    degree: (rows,) neighbours of its node
    size: (rows,) ‖μ‖ of the present activation μ, without dropout
    change: (rows,) ‖μ - h̄‖
    """

    call: int
    age: Tensor
    degree: Tensor
    size: Tensor
    change: Tensor

    @property
    def relative(self) -> float:
        """√(Σ ‖μ - h̄‖² / Σ ‖μ‖²) over all rows."""
        return _relative(self.change, self.size)

    @property
    def unwritten(self) -> float:
        """The share of rows that were never written, and read as zero."""
        return float((self.age == NEVER).double().mean()) if len(self.age) else 0.0

    @property
    def mean_age(self) -> float:
        """Of the rows that were written, in steps; NaN where none was."""
        return float(self.age[self.age != NEVER].double().mean())

    def by_age(self) -> list[Bin]:
        """Rows that were written, in runs of ages that double: 0, 1, 2-3, 4-7, ..."""
        return self._bins(self.age)

    def by_degree(self) -> list[Bin]:
        """Rows that were written, in runs of degrees that double: 0, 1, 2-3, 4-7, ..."""
        return self._bins(self.degree)

    def _bins(self, keys: Tensor) -> list[Bin]:
        written = self.age != NEVER
        keys, change, size = keys[written], self.change[written], self.size[written]
        # 0 -> 0, 1 -> 1, 2 and 3 -> 2, ...: exact for any integer below 2**53
        place = torch.frexp(keys.double()).exponent
        bins = []
        for number in torch.unique(place).tolist():
            here = place == number
            first, last = (0, 0) if number == 0 else (2 ** (number - 1), 2**number - 1)
            bins.append(Bin(first, last, int(here.sum()), _relative(change[here], size[here])))
        return bins


@dataclass(frozen=True)
class Bin:
    """Rows with first <= key <= last: how many, and √(Σ ‖μ - h̄‖² / Σ ‖μ‖²) of them."""

    first: int
    last: int
    rows: int
    relative: float


def measure_staleness(
    model: nn.Module, exact: MiniBatches, batches: MiniBatches, nodes: Tensor
) -> list[Staleness]:
    """Of each table of `batches`, at the rows that the exact computation of `nodes` uses.

    The present activations are exact and without dropout. A history under dropout (cv's) differs
    from them by its dropout noise too, however fresh it is.
    """
    recorder = Recorder(model)
    with torch.no_grad(), frozen(recorder, exact, 0, dropout=False):
        batch = exact.batch(nodes)
        batch.run(recorder)
    degrees = exact.P.neighbours.indptr.diff()
    found = []
    for call, h in enumerate(recorder.passes[0].inputs):
        table = batches.histories.tables.get(call)
        if table is None:
            continue
        rows = batch.plan.levels[call]
        written = table.written[rows.to(table.written.device)].cpu()
        held = table.read(rows.to(h.device), h.dtype)
        found.append(
            Staleness(
                call,
                torch.where(written == NEVER, NEVER, batches.step - written),
                degrees[rows.cpu()],
                h.norm(dim=1).double().cpu(),
                (h - held).norm(dim=1).double().cpu(),
            )
        )
    return found


def _relative(change: Tensor, size: Tensor) -> float:
    total = float(size.square().sum())
    return math.sqrt(float(change.square().sum()) / total) if total else 0.0
