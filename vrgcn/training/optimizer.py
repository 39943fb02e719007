"""The optimiser that a config asks for, clipped gradients, and the learning rate of each step.

With W the steps of the warm-up, T those of the whole run and t those that are done, the rate is
`learning_rate` times

    (t + 1) / W                             of the first W steps, with every schedule
    1                                       none
    (1 + cos(π (t - W) / (T - W))) / 2      cosine: down to 0 at the planned end of the run
    1/2, 1/4, …                             plateau: half as much after so many evaluations, see
                                            PATIENCE, without a better validation score
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn
from torch.nn.utils import get_total_norm
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR, ReduceLROnPlateau

from vrgcn.files.mistakes import InputError
from vrgcn.models.node_table import node_tables
from vrgcn.models.optimizers import RowAdam, uncompiled
from vrgcn.training.config import TrainConfig

# Rate of rows that neighbours read beside their features, as a share of the learning rate: at the
# full rate they memorise the training labels within two epochs (tolokers, amazon_computers). Rows
# that are their nodes' own input learn at the full rate.
_RATE_OF_ROWS = 0.1


def build_optimizer(model: nn.Module, config: TrainConfig) -> torch.optim.Optimizer:
    """Build Adam or SGD, with weight decay on all weights or only on the first matrix."""
    learned = [t for t in node_tables(model).values() if t.rows.requires_grad]
    tables, inputs = ([t.rows for t in learned if t.input == own] for own in (False, True))
    rows = {id(table.rows) for table in learned}
    parameters = [p for p in model.parameters() if p.requires_grad and id(p) not in rows]
    if not parameters and not learned:
        raise InputError("the model has no parameters to train")
    if config.decay == "all":
        decayed, free = parameters, []
    else:
        first = next((n for n, p in enumerate(parameters) if p.dim() >= 2), 0)
        decayed, free = parameters[first : first + 1], parameters[:first] + parameters[first + 1 :]
    rate = config.learning_rate
    groups: list[dict[str, Any]] = [
        {"params": decayed, "weight_decay": config.weight_decay or 0.0},
        {"params": free, "weight_decay": 0.0},
        {"params": tables, "weight_decay": 0.0, "lr": _RATE_OF_ROWS * rate},
        {"params": inputs, "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    if config.optimizer == "sgd":
        return uncompiled(torch.optim.SGD)(groups, lr=rate)
    # One kernel instead of a dozen small ones per parameter: three times as fast on the CPU.
    fused = (parameters or tables or inputs)[0].device.type in ("cpu", "cuda")
    kind = RowAdam if learned else torch.optim.Adam
    return uncompiled(kind)(groups, lr=rate, fused=fused)


def clip_gradients(model: nn.Module, most: float) -> None:
    """Scale the gradient of all weights together down to a norm of at most `most`."""
    grads = [p.grad for p in model.parameters() if p.grad is not None]
    parts = [grad._values() if grad.is_sparse else grad for grad in grads]
    factor = (most / (get_total_norm(parts) + 1e-6)).clamp(max=1.0)
    for part in parts:
        part.mul_(factor)


PATIENCE = 5  # evaluations without a better score before the rate is halved


class Schedule:
    """Sets the rate of an optimiser; without a schedule and a warm-up the rate stays as it is.

    steps: minibatches of an epoch
    larger: whether a larger validation score is better
    """

    def __init__(
        self, optimizer: Optimizer, config: TrainConfig, steps: int, *, larger: bool = True
    ) -> None:
        self.optimizer = optimizer
        self._cosine = config.schedule == "cosine"
        self._warmup, self._total = config.warmup * steps, config.epochs * steps
        self._done = 0
        self._by_step: LambdaLR | None = None
        self._plateau: ReduceLROnPlateau | None = None
        if self._cosine or self._warmup:
            self._by_step = LambdaLR(optimizer, lambda _: self._factor())
        if config.schedule == "plateau":
            self._plateau = ReduceLROnPlateau(
                optimizer,
                mode="max" if larger else "min",
                factor=0.5,
                patience=PATIENCE,
                threshold=0.0,
            )

    def updated(self, done: int) -> None:
        """Called after the weights were updated.

        done: minibatches so far, including those that only refreshed histories
        """
        # After the warm-up, the plateau schedule alone sets the rate.
        rising = self._done < self._warmup
        self._done = done
        if self._by_step is not None and (rising or self._cosine):
            self._by_step.step()

    def evaluated(self, score: float) -> None:
        """Called after the model was scored on the validation nodes."""
        if self._plateau is not None and self._done >= self._warmup:
            self._plateau.step(score)

    def scale(self, factor: float) -> None:
        """Multiply every rate from now on by `factor`."""
        for group in self.optimizer.param_groups:
            group["lr"] *= factor
        if self._by_step is not None:
            self._by_step.base_lrs = [rate * factor for rate in self._by_step.base_lrs]

    def state_dict(self) -> dict[str, Any]:
        parts = {"by_step": self._by_step, "plateau": self._plateau}
        states = {name: part.state_dict() for name, part in parts.items() if part is not None}
        return {**states, "done": self._done} if states else {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load the schedule's state; the optimiser's own state, which contains the rate, is loaded
        separately."""
        self._done = state.get("done", 0)
        if self._by_step is not None:
            self._by_step.load_state_dict(state["by_step"])
        if self._plateau is not None:
            self._plateau.load_state_dict(state["plateau"])

    def _factor(self) -> float:
        if self._done < self._warmup:
            return (self._done + 1) / self._warmup
        if not self._cosine:
            return 1.0
        share = (self._done - self._warmup) / max(self._total - self._warmup, 1)
        return (1 + math.cos(math.pi * min(share, 1.0))) / 2
