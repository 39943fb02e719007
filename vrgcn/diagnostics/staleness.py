"""Records the calls of `propagate` in a model, and measures the age of the histories that a
minibatch reads and their distance from present values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from vrgcn.engine.forward import run_forward
from vrgcn.engine.history import NEVER
from vrgcn.engine.minibatches import MiniBatches
from vrgcn.engine.plan import Relation
from vrgcn.graph.sparse import concatenate
from vrgcn.pairs.batches import PARTNERS
from vrgcn.training.common_move import common_square
from vrgcn.training.gradients import frozen, gradient, trainable
from vrgcn.training.target import Target


class Recorder(nn.Module):
    """A model that records the arguments and answers of its calls of `propagate`.

    A minibatch reads from the recorder's mode whether dropout is on: code that changes the model's
    mode while it records must change the recorder's too, as `frozen(recorder)` does.

    passes: one entry for each forward pass (`cvd` makes two: without dropout, then with it)
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.training = model.training  # without the submodules: each keeps its own mode
        self.passes: list[Calls] = []

    def forward(self, x: Tensor, propagate: Any) -> Tensor:
        calls = Calls()
        self.passes.append(calls)
        return run_forward(self.model, x, _Noting(propagate, calls))


@dataclass
class Calls:
    """Calls of one forward pass: the activations propagated on each level, and the answer to each
    different call of `propagate`. A pass that stops early may lack its last answer."""

    inputs: list[Tensor] = field(default_factory=list)
    answers: list[Tensor] = field(default_factory=list)


class _Noting:
    """A `propagate` that records its calls."""

    def __init__(self, propagate: Any, calls: Calls) -> None:
        self._propagate = propagate
        self._calls = calls
        self._known: set[tuple[int, Relation]] = set()

    def __call__(self, h: Tensor, over: Relation = None) -> Tensor:
        self._enter(h)
        answer: Tensor = self._propagate(h, over)
        self._note(answer, over)
        return answer

    def reached(self, h: Tensor, over: str) -> tuple[Tensor, Tensor]:
        self._enter(h)
        rows, answer = self._propagate.reached(h, over)
        self._note(answer, over)
        return rows, answer

    def _enter(self, h: Tensor) -> None:
        if not self._calls.inputs or h is not self._calls.inputs[-1]:
            self._calls.inputs.append(h)

    def _note(self, answer: Tensor, over: Relation) -> None:
        call = len(self._calls.inputs), over
        if call not in self._known:  # a repeated call has the same answer
            self._known.add(call)
            self._calls.answers.append(answer)

    def __getattr__(self, name: str) -> Any:
        """Everything that is no call: nodes, degrees, tables, relations."""
        return getattr(self._propagate, name)

    def own(self, h: Tensor) -> Tensor:
        own: Tensor = self._propagate.own(h)
        return own

    def beside(self, h: Tensor, over: Relation = None) -> Tensor:
        return concatenate(self.own(h), self(h, over))


@dataclass(frozen=True)
class Staleness:
    """One table at some rows: for activations, the rows that the exact computation of one minibatch
    uses; for gradients, the minibatch's own rows.

    level: the level of propagation, from 0
    kind: "h" for activations, "g" for gradients
    age: (rows,) steps since the row was written, NEVER if it was not
    degree: (rows,) neighbours of its node
    size: (rows,) ‖μ‖ of its present value μ, without dropout
    change: (rows,) ‖μ - h̄‖
    common: ‖E (μ - h̄)‖², the square of the move that all rows made together
    """

    level: int
    kind: str
    age: Tensor
    degree: Tensor
    size: Tensor
    change: Tensor
    common: float = 0.0

    @property
    def relative(self) -> float:
        """√(Σ ‖μ - h̄‖² / Σ ‖μ‖²) over all rows."""
        return _relative(self.change, self.size)

    @property
    def common_share(self) -> float:
        """Share of the rows' Σ ‖μ - h̄‖² that is one move of all rows; in a gradient it adds up."""
        total = float(self.change.square().mean()) if len(self.change) else 0.0
        return min(self.common / total, 1.0) if total else 0.0

    @property
    def unwritten(self) -> float:
        """Share of rows that were never written, which are read as zero."""
        return float((self.age == NEVER).double().mean()) if len(self.age) else 0.0

    @property
    def mean_age(self) -> float:
        """Mean age of the written rows, in steps; NaN if there are none."""
        return float(self.age[self.age != NEVER].double().mean())

    def by_age(self) -> list[Bin]:
        """Return the written rows, grouped by ages that double: 0, 1, 2-3, 4-7, ..."""
        return self._bins(self.age)

    def by_degree(self) -> list[Bin]:
        """Return the written rows, grouped by degrees that double: 0, 1, 2-3, 4-7, ..."""
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
    """Rows with first <= key <= last: their number, and their √(Σ ‖μ - h̄‖² / Σ ‖μ‖²)."""

    first: int
    last: int
    rows: int
    relative: float


def measure_staleness(
    model: nn.Module,
    exact: MiniBatches,
    batches: MiniBatches,
    nodes: Tensor,
    target: Target,
) -> list[Staleness]:
    """Measure the staleness of each table of `batches`, by the rows that a minibatch `nodes` reads
    and writes.

    Dropout is off here. A history under dropout (cv's) also differs by its dropout noise, however
    fresh it is.
    """
    degrees = partial(_degrees, exact)
    return [
        *_of_activations(model, exact, batches, nodes, degrees),
        *_of_gradients(model, batches, nodes, target, degrees),
    ]


def _of_activations(
    model: nn.Module,
    exact: MiniBatches,
    batches: MiniBatches,
    nodes: Tensor,
    degrees: Callable[[Tensor], Tensor],
) -> Iterator[Staleness]:
    """Compare tables with the present exact activations, at the rows that their computation
    uses."""
    recorder = Recorder(model)
    with torch.no_grad(), frozen(recorder, 0, dropout=False) as generator:
        batch = exact.outputs_of(nodes, generator)
        batch.run(recorder)
    for level, h in enumerate(recorder.passes[0].inputs):
        table = batches.histories.tables.get((level, "h"))
        if table is None:
            continue
        rows = batch.plan.levels[level].nodes
        written = table.written[rows.to(table.written.device)].cpu()
        held = table.read(rows.to(h.device), h.dtype)
        yield Staleness(level, "h", _age(written, batches.step), degrees(rows), *_norms(h, held))


def _of_gradients(
    model: nn.Module,
    batches: MiniBatches,
    nodes: Tensor,
    target: Target,
    degrees: Callable[[Tensor], Tensor],
) -> Iterator[Staleness]:
    """Compare the rows that the minibatch's backward pass would write with the rows in the table.

    The exact gradients of single nodes would need the whole graph. These are the estimator's: they
    contain the errors of the tables of the levels above.
    """
    if not batches.estimator.gradient_history:
        return
    others = ("h", PARTNERS)
    tables = {key: table for key, table in batches.histories.tables.items() if key[1] not in others}
    rows = {key: table.among(nodes) for key, table in tables.items()}
    held = {key: table.read(rows[key], torch.float64) for key, table in tables.items()}
    written = {key: table.last_written(rows[key]) for key, table in tables.items()}
    with frozen(model, 0, dropout=False) as generator:
        batch = batches.batch(nodes, generator)
        gradient(target, batch, batch.run(model), trainable(model))
    now = {key: table.read(rows[key], torch.float64) for key, table in tables.items()}
    batch.discard()
    for key, before in held.items():
        age = _age(written[key].cpu(), batches.step)
        yield Staleness(key[0], "g", age, degrees(rows[key]), *_norms(now[key], before))


def _degrees(batches: MiniBatches, nodes: Tensor) -> Tensor:
    return torch.stack([P.degrees(nodes.cpu()) for P in batches.setup.P.values()]).sum(0)


def _age(written: Tensor, step: int) -> Tensor:
    return torch.where(written == NEVER, NEVER, step - written)


def _norms(now: Tensor, before: Tensor) -> tuple[Tensor, Tensor, float]:
    """Return the size and the change of each row, and the square of their common change."""
    apart = now - before
    sizes = now.norm(dim=1).double().cpu(), apart.norm(dim=1).double().cpu()
    return *sizes, common_square(apart)


def _relative(change: Tensor, size: Tensor) -> float:
    total = float(size.square().sum())
    return math.sqrt(float(change.square().sum()) / total) if total else 0.0
