"""PyTorch's optimisers without what they do for `torch.compile`.

Their methods are wrapped so that a compiled program leaves them out, and the first call of such a
method imports the compiler: a second and a half, before the first step. Nothing here is compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import unwrap
from typing import Any, TypeVar, cast

import torch
from torch import Tensor
from torch.optim import Optimizer

_WRAPPED = ("add_param_group", "zero_grad", "state_dict", "load_state_dict")
Kind = TypeVar("Kind", bound=Optimizer)


def uncompiled(kind: type[Kind]) -> type[Kind]:
    """A subclass of an optimiser whose methods are the unwrapped ones: the same steps, bit by bit.

    Steps are not differentiable, whatever `differentiable` says.
    """
    methods = {name: unwrap(getattr(kind, name)) for name in _WRAPPED}
    methods["step"] = torch.no_grad()(unwrap(kind.step))
    return cast(type[Kind], type(kind.__name__, (kind,), methods))


_dense_step = unwrap(torch.optim.Adam.step)  # see vrgcn/models/optimizers.py


class RowAdam(torch.optim.Adam):
    """Adam for dense and for sparse gradients.

    A parameter with a sparse gradient is a table. Rows that the gradient does not contain stay
    unchanged, and so do their moments: the cost of a step depends on the rows that it reads, not on
    the size of the table. Moments are corrected by the number of steps, as in
    `torch.optim.SparseAdam`.
    """

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> Any:
        for group in self.param_groups:
            for table in group["params"]:
                if table.grad is not None and table.grad.is_sparse:
                    self._move_rows(table, group)
                    table.grad = None  # done: the rest is for dense gradients
        return _dense_step(self, closure)

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
