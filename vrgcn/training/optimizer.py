"""Builds the optimiser that a config asks for, and clips gradients."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn.utils import get_total_norm

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
