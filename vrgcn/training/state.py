"""The state of a training run as a value: everything the next step depends on.

It can be taken between any two steps and restored into a trainer of the same model, graph and
config, which then continues to the same bits. Nothing outside it affects the next step.
"""

from __future__ import annotations

import copy
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from torch import Tensor

from vrgcn.engine.batch import Position


@dataclass(frozen=True)
class Epoch:
    """One point of the curve.

    loss: mean training loss of the epoch's minibatches
    val: validation score after it; None if it was not evaluated
    seconds: training time since the start, evaluation not counted
    age: mean age of the histories in steps; None without histories
    sampled, history_reads: neighbours computed anew, and read from the history, per visited node
    staleness, gradient_staleness, gradient_noise: see training.monitor; None if not measured
    common_staleness, gradient_common_staleness: of the epoch's last minibatch, see
        training.common_move; None without such tables
    halo_age, halo_staleness: of several processes, mean age in steps of the copies that they keep
        of each other's histories, and how far these are from the originals; exchanged: bytes that
        they sent each other in the epoch's steps
    """

    epoch: int
    loss: float
    val: float | None
    seconds: float
    age: float | None
    sampled: float
    history_reads: float
    staleness: float | None = None
    gradient_staleness: float | None = None
    gradient_noise: float | None = None
    common_staleness: float | None = None
    gradient_common_staleness: float | None = None
    halo_age: float | None = None
    halo_staleness: float | None = None
    exchanged: int | None = None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class Progress:
    """The progress of a run so far.

    curve: a point per finished epoch; best: the point with the best validation score
    behind: evaluations since then
    loss, sampled, history_reads: sums over the minibatches of the present epoch
    seconds: of training; others: of evaluation, of diagnostics, of writing checkpoints
    used: seconds of everything, including waiting for other processes, in all processes that
        trained it
    rollbacks: how often the loss became NaN and training went back to a checkpoint
    compared: validation scores by which a race chose this training among others, by their names;
        race_seconds: what it cost beside this training; least: epochs that are worth this cost,
        before which patience does not end the training
    """

    curve: list[Epoch] = field(default_factory=list)
    best: Epoch | None = None
    behind: int = 0
    loss: float = 0.0
    sampled: int = 0
    history_reads: int = 0
    seconds: float = 0.0
    evaluation_seconds: float = 0.0
    diagnostics_seconds: float = 0.0
    checkpoint_seconds: float = 0.0
    used: float = 0.0
    rollbacks: int = 0
    race_seconds: float = 0.0
    least: int = 0
    compared: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class TrainState:
    """The complete state of a training run.

    model, optimizer, schedule: their state dicts; the last is empty if the rate is constant
    best: the weights of the best epoch so far; None before there is one
    histories: the tables and when each row was written
    random: the states of all generators, by name
    position: epoch, place in it, step; the order of an epoch follows from the seed
    progress: curve, best epoch, patience, sums of the present epoch, seconds
    average: the exponential average of the weights; None if none is kept
    """

    model: dict[str, Tensor]
    optimizer: dict[str, Any]
    schedule: dict[str, Any]
    best: dict[str, Tensor] | None
    histories: dict[str, Tensor]
    random: dict[str, Tensor]
    position: Position
    progress: Progress
    average: dict[str, Tensor] | None = None

    def copy(self) -> TrainState:
        """Return a copy that does not change while training continues."""
        return TrainState(**{f.name: copy.deepcopy(getattr(self, f.name)) for f in fields(self)})
