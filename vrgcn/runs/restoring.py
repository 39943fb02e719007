"""Checks whether a state that was read from a file can belong to this run.

A checksum shows that a file is what was written, not that it makes sense: a person who edits a file
can update its checksum. Errors that PyTorch accepts silently, such as moments of another shape,
would crash the interpreter later, or train on as another run.
"""

from __future__ import annotations

import copy
import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from vrgcn.engine.history import NEVER
from vrgcn.files.kinds import COUNT, Kind, check_kinds, or_null, shown
from vrgcn.files.mistakes import InputError
from vrgcn.training.state import Epoch, Progress, TrainState

if TYPE_CHECKING:
    from vrgcn.training.trainer import Trainer

_NUMBER = Kind(lambda v: isinstance(v, int | float) and not isinstance(v, bool), "a number")
_FINITE = Kind(lambda v: _NUMBER.good(v) and math.isfinite(v), "a finite number")
_POINT = {f.name: or_null(_NUMBER) for f in fields(Epoch)} | {"epoch": COUNT, "loss": _NUMBER}
_COUNTS = ("behind", "sampled", "history_reads", "rollbacks", "least")
_PROGRESS = {
    f.name: COUNT if f.name in _COUNTS else _NUMBER
    for f in fields(Progress)
    if f.name not in ("curve", "best", "compared")
}
_RATES = ("lr", "initial_lr")


def check_state(trainer: Trainer, state: TrainState) -> None:
    """Raise `ValueError` if the state cannot have been taken from a trainer like this one."""
    _check_place(trainer, state)
    _check_progress(state.progress)
    _check_tensors("weights", state.model, trainer.model.state_dict())
    if (state.best is None) != (state.progress.best is None):
        raise InputError("there must be best weights where there is a best epoch, and only there")
    if state.best is not None:
        _check_tensors("best weights", state.best, trainer.model.state_dict())
    average = None if trainer.average is None else trainer.average.state_dict()
    if (state.average is None) != (average is None):
        raise InputError("it has an average of the weights where the run has none, or lacks it")
    if state.average is not None and average is not None:
        _check_tensors("averaged weights", state.average, average)
    _check_optimizer(trainer, state.optimizer)
    _check_alike("its schedule", state.schedule, trainer.schedule.state_dict())
    _check_histories(trainer, state)
    now = trainer.random.state_dict() | {"minibatches": trainer.minibatches.generator.get_state()}
    _check_tensors("states of generators", state.random, now)


def _check_place(trainer: Trainer, state: TrainState) -> None:
    at, steps, done = state.position, len(trainer.minibatches), len(state.progress.curve)
    if not all(COUNT.good(value) for value in (at.epoch, at.place, at.step)):
        raise InputError(f"its position is {at}")
    inside = at.epoch == done + 1 and 0 < at.place < steps
    between = at.epoch == done and at.place == (steps if done else 0)
    if not (inside or between) or at.step != max(at.epoch - 1, 0) * steps + at.place:
        raise InputError(f"its position is {at} after {done} epochs of {steps} steps")


def _check_progress(progress: Progress) -> None:
    check_kinds("its progress", vars(progress), _PROGRESS)
    check_kinds("its comparison", progress.compared, dict.fromkeys(progress.compared, _NUMBER))
    for number, point in enumerate(progress.curve, start=1):
        check_kinds(f"its epoch {number}", vars(point), _POINT)
        if point.epoch != number:
            raise InputError(f"its epoch {number} calls itself {point.epoch}")
    if progress.best is not None:
        check_kinds("its best epoch", vars(progress.best), _POINT)
        if not 1 <= progress.best.epoch <= len(progress.curve):
            raise InputError(f"its best epoch is {progress.best.epoch}")


def _check_optimizer(trainer: Trainer, state: Any) -> None:
    """Check the optimiser's state. Its settings equal the config's, except rates, which schedules
    and rollbacks change."""
    own = trainer.optimizer.state_dict()
    if not isinstance(state, dict) or state.keys() != own.keys():
        raise InputError("its optimiser has other parts")
    for found, wanted in zip(state["param_groups"], own["param_groups"], strict=True):
        rates = {name: found.get(name) for name in _RATES if name in wanted}
        if not all(_FINITE.good(rate) and rate >= 0 for rate in rates.values()):
            raise InputError(f"its learning rates are {shown(rates)}")
        if found != wanted | rates:
            raise InputError("its optimiser has other settings")
    weights = [weight for group in trainer.optimizer.param_groups for weight in group["params"]]
    kept = _moments(trainer.optimizer)
    for number, moments in state["state"].items():
        if moments.keys() != kept:
            raise InputError(f"its optimiser has other moments for weight {shown(number)}")
        for name, moment in moments.items():
            shape = moment.shape if isinstance(moment, Tensor) else ()
            if type(number) is not int or shape not in (weights[number].shape, torch.Size()):
                raise InputError(f"its optimiser has {name} of another shape for weight {number}")


def _moments(optimizer: torch.optim.Optimizer) -> set[str]:
    """Return the names of the values that an optimiser keeps for a weight, found by one step of a
    scratch optimiser."""
    weight = torch.zeros(1, requires_grad=True)
    weight.grad = torch.zeros(1)
    other = copy.copy(optimizer)
    group = optimizer.param_groups[0] | {"params": [weight]}
    other.param_groups, other.state = [group], defaultdict(dict)
    other.step()
    return set(other.state[weight])


def _check_alike(what: str, found: Any, wanted: Any) -> None:
    """Raise if a value does not have the structure of `wanted`: its objects, lists, numbers and
    texts."""
    if isinstance(wanted, dict) and isinstance(found, dict) and found.keys() == wanted.keys():
        for name, part in wanted.items():
            _check_alike(f"{what}, {name}", found[name], part)
    elif isinstance(wanted, list) and isinstance(found, list) and len(found) == len(wanted):
        for place, part in enumerate(wanted):
            _check_alike(what, found[place], part)
    elif not (found == wanted or (_NUMBER.good(found) and _NUMBER.good(wanted))):
        raise InputError(f"{what} is {shown(found)}")


def _check_histories(trainer: Trainer, state: TrainState) -> None:
    histories, kinds = trainer.minibatches.histories, trainer.graph.kinds
    # Gradients of a relation have a row for each node of one kind.
    of_kinds = {*kinds.sizes.values()}
    tables = histories.tables_of(state.histories)
    for name, table in tables.items():
        level, kind, part = name.split(".")
        if part == "move":
            values = tables.get(f"{level}.{kind}.values")
            of_all = values is not None and len(values) == histories.num_nodes
            _check_move(name, table, values, len(kinds.names) if of_all else 1)
            continue
        counts = {histories.num_nodes} | (of_kinds if kind.startswith("g") else set())
        written = tables.get(f"{level}.{kind}.written")
        dtype = torch.int64 if part == "written" else histories.dtype_of(kind)
        if not level.isdecimal() or part not in ("values", "written"):
            raise InputError(f"it has a table {name!r}")
        dimensions = 1 if part == "written" else 2
        shaped = table.dim() == dimensions and len(table) in counts
        if not shaped or written is None or len(table) != len(written) or table.dtype != dtype:
            raise InputError(f"its table {name} is {tuple(table.shape)} of {table.dtype}")
        if part != "written":
            continue
        first, last = (int(step) for step in table.aminmax())
        if first < NEVER or last > state.position.step:
            raise InputError(f"its table {name} was written at steps that never were")


def _check_move(name: str, move: Tensor, values: Tensor | None, moves: int) -> None:
    shaped = values is not None and move.shape == (moves, *values.shape[1:])
    if not shaped or not move.is_floating_point():
        raise InputError(f"its table {name} is {tuple(move.shape)} of {move.dtype}")


def _check_tensors(what: str, found: Mapping[str, Any], wanted: Mapping[str, Tensor]) -> None:
    if found.keys() != wanted.keys():
        names = ", ".join(sorted(found.keys() ^ wanted.keys()))
        raise InputError(f"its {what} are other ones: {names}")
    for name, own in wanted.items():
        other = found[name]
        if not isinstance(other, Tensor) or (other.shape, other.dtype) != (own.shape, own.dtype):
            raise InputError(f"its {what} have another shape or type: {name}")
