"""Adam that moves only the rows of a table that a step's gradient has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


class RowAdam(torch.optim.Adam):
    """Adam for dense gradients and for sparse ones.

    A parameter with a sparse gradient is a table. Rows that the gradient does not have stay as
    they are, and so do their moments: a step costs the rows that it reads, however many there are.
    Moments are corrected by the number of steps, as those of `torch.optim.SparseAdam` are.
    """

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> Any:
        for group in self.param_groups:
            for table in group["params"]:
                if table.grad is not None and table.grad.is_sparse:
                    self._move_rows(table, group)
                    table.grad = None  # done: the rest is for the dense
        return super().step(closure)

    def _move_rows(self, table: Tensor, group: dict[str, Any]) -> None:
        grad = table.grad.coalesce()  # type: ignore[union-attr]
        nodes, values = grad.indices()[0], grad.values()
        state = self.state[table]
        if not state:
            state["step"] = torch.zeros((), dtype=torch.float32)
            state["exp_avg"] = torch.zeros_like(table)
            state["exp_avg_sq"] = torch.zeros_like(table)
        state["step"] += 1
        step, (first, second) = float(state["step"]), group["betas"]
        rows = table.index_select(0, nodes)
        if group["weight_decay"]:
            values = values.add(rows, alpha=group["weight_decay"])
        mean = state["exp_avg"].index_select(0, nodes).lerp_(values, 1 - first)
        square = state["exp_avg_sq"].index_select(0, nodes)
        square.mul_(second).addcmul_(values, values, value=1 - second)
        state["exp_avg"].index_copy_(0, nodes, mean)
        state["exp_avg_sq"].index_copy_(0, nodes, square)
        size = (square / (1 - second**step)).sqrt_().add_(group["eps"])
        rows.addcdiv_(mean, size, value=-group["lr"] / (1 - first**step))
        table.index_copy_(0, nodes, rows)
