"""PyTorch's optimisers without what they do for `torch.compile`.

Their methods are wrapped so that a compiled program leaves them out, and the first call of such a
method imports the compiler: a second and a half, before the first step. Nothing here is compiled.
"""

from __future__ import annotations

from inspect import unwrap
from typing import TypeVar, cast

import torch
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
