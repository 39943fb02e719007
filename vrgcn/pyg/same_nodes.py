"""Sums and concatenations of rows of different levels, as in residual connections.

In PyG a layer returns as many rows as it is given. Here it returns the first of them: those of the
next level. So `x + conv(x, edge_index)` adds two tensors of different lengths, of which the longer
begins with the nodes of the shorter. Inside `SameNodes`, functions that work row by row take the
rows that both have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

_NAMES = (
    *("add", "sub", "mul", "div", "true_divide", "maximum", "minimum", "max", "min", "pow"),
    *("where", "lerp", "addcmul", "addcdiv", "subtract", "multiply", "divide", "dist"),
    *("cosine_similarity", "fmax", "fmin", "logaddexp", "eq", "ne", "lt", "le", "gt", "ge"),
    *("__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__truediv__"),
    *("__rtruediv__", "__iadd__", "__isub__", "__imul__", "__itruediv__", "__pow__", "rsub"),
    *("add_", "sub_", "mul_", "div_", "lerp_", "addcmul_", "__rdiv__", "__div__"),
)
_BY_ROW = {
    found
    for place in (torch, Tensor)
    for name in _NAMES
    if (found := getattr(place, name, None)) is not None
}
_JOINED = {torch.cat, torch.concat, torch.concatenate}
_STACKED = {torch.stack, torch.hstack, torch.column_stack}


class SameNodes(TorchFunctionMode):
    """Gives functions of several tensors the rows that all of them have.

    `shorter`: (rows of an earlier level, rows at hand) of every kind of nodes
    """

    def __init__(self) -> None:
        super().__init__()
        self.shorter: set[tuple[int, int]] = set()

    def note(self, earlier: Iterable[int], now: int) -> None:
        """The rows at hand are fewer than those of earlier levels."""
        self.shorter.update((count, now) for count in earlier if count != now)

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if not self.shorter:
            return func(*args, **kwargs)
        if func in _BY_ROW:
            args = self._common(args)
        elif func in _STACKED or (func in _JOINED and _dimension(args, kwargs) != 0):
            args = (type(args[0])(self._common(tuple(args[0]))), *args[1:])
        return func(*args, **kwargs)

    def _common(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """The values, longer tensors cut to the rows of the shortest that they begin with."""
        counts = {v.shape[0] for v in values if isinstance(v, Tensor) and v.dim()}
        if len(counts) < 2:
            return values
        dims = max(v.dim() for v in values if isinstance(v, Tensor))
        pairs = sorted(self.shorter, reverse=True)  # of several, the shortest comes last
        cut = {long: now for long, now in pairs if long in counts and now in counts}
        return tuple(
            value[: cut[value.shape[0]]]
            if isinstance(value, Tensor) and value.dim() == dims and value.shape[0] in cut
            else value
            for value in values
        )


def _dimension(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> int:
    """The dimension that tensors are concatenated along."""
    given = args[1] if len(args) > 1 else kwargs.get("dim", kwargs.get("axis", 0))
    first = args[0][0]
    return int(given) % first.dim() if isinstance(first, Tensor) and first.dim() else int(given)
