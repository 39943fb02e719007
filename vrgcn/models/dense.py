"""The dense part of graph layers: linear layers for dense and sparse inputs, dropout, norms,
activations, and the unit of what a model predicts.

Dropout draws random bytes. `torch.nn.Dropout` draws a floating-point number per element, on the CPU
the largest single cost of a wide input; comparing bytes with a threshold needs an eighth of the
random bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import islice, pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vrgcn.files.mistakes import InputError
from vrgcn.graph.blocks import Blocks
from vrgcn.graph.randomness import own_generator
from vrgcn.graph.sparse import CSR, in_blocks, is_sparse, with_values
from vrgcn.models.config import check_dropout


class Dropout(nn.Module):
    """Sets elements to zero with probability p and scales the others by 1 / (1 - p).

    p is taken to the nearest 1/256 where that is within 1% of it (0.2 becomes 51/256), else to the
    nearest 1/65536; the scale is that of the probability taken, so the mean is exact. In `fit` it
    draws from the run's own generator, elsewhere from PyTorch's default one, as `torch.nn.Dropout`
    does. Of a sparse CSR tensor, and of blocks, the stored values are dropped.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        check_dropout(p)
        self.p = p
        self.bits, self.threshold = _quantise(p)

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.threshold == 0:
            return x
        if in_blocks(x):
            return x.map(self.forward)
        if is_sparse(x):
            return with_values(x, self._drop(x.values()))
        return self._drop(x)

    def _drop(self, x: Tensor) -> Tensor:
        levels = 1 << self.bits
        keep = _at_least(_random(x.shape, self.bits, x.device), self.threshold - levels // 2)
        dropped: Tensor = _Masked.apply(x, keep, levels / (levels - self.threshold))
        return dropped

    def extra_repr(self) -> str:
        return f"p={self.p}"


class _Masked(torch.autograd.Function):
    """x * keep * scale, remembering only the mask, one or two bytes an element."""

    @staticmethod
    def forward(ctx, x: Tensor, keep: Tensor, scale: float) -> Tensor:  # type: ignore[no-untyped-def]
        ctx.keep, ctx.scale = keep, scale
        return _mask(x, keep, scale)

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None, None]:  # type: ignore[no-untyped-def]
        return _mask(grad, ctx.keep, ctx.scale), None, None


def _mask(x: Tensor, keep: Tensor, scale: float) -> Tensor:
    # Widening small integers is vectorised on the CPU; a product with a boolean mask is not, and
    # takes ten times as long. Scale and product in one pass: of wide rows each is a trip to memory.
    mask = keep.to(x.dtype)
    return torch.addcmul(x.new_zeros(()), mask, x, value=scale, out=mask)


def _at_least(values: Tensor, threshold: int) -> Tensor:
    """1 where values >= threshold, else 0, in the integers' own type; changes `values`.

    The same as a comparison, which on the CPU takes several times as long as these two steps.
    """
    return values.clamp_(threshold - 1, threshold).sub_(threshold - 1)


def _quantise(p: float) -> tuple[int, int]:
    """(bits, threshold): p is about threshold / 2**bits."""
    threshold = round(p * 256)
    close = abs(threshold / 256 - p) <= 0.01 * min(p, 1 - p)
    return (8, threshold) if close else (16, min(round(p * 65536), 65535))


def _random(shape: torch.Size, bits: int, device: torch.device) -> Tensor:
    """Uniform signed integers of 8 or 16 bits."""
    count = shape.numel()
    words = torch.empty(-(-count * bits // 64), dtype=torch.int64, device=device)
    words.random_(-(2**63), None, generator=own_generator(device))
    return words.view(torch.int8 if bits == 8 else torch.int16)[:count].view(shape)


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "elu": F.elu,
    "gelu": F.gelu,
    "tanh": torch.tanh,
    "softplus": F.softplus,
}


class Linear(nn.Linear):
    """x W' (+ b), Glorot-uniform, for dense or sparse CSR x."""

    def reset_parameters(self) -> None:
        nn.init.xavier_uniform_(self.weight)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, x: Tensor) -> Tensor:
        if not is_sparse(x):
            return super().forward(x)
        return self.with_bias(CSR.from_torch(x) @ self.weight.t())

    def with_bias(self, y: Tensor) -> Tensor:
        return y if self.bias is None else y + self.bias


class InputLinear(Linear):
    """The same layer for sparse features, and for features that are multiplied before they are
    propagated.

    `weight` is W', (in, out): what a sparse x adds up are rows in one piece, and so it is in the
    gradient and in the optimiser. In a state dict it is W, as that of any other linear layer.

    After `standardise` it is (x - centre) diag(scale) W' (+ b), and x stays sparse.
    """

    centre: Tensor | None  # (in,)
    scale: Tensor | None  # (in,), or () if it is one number

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        super().__init__(in_features, out_features, bias=bias)
        self.weight = nn.Parameter(self.weight.detach().t().contiguous())
        self.register_buffer("centre", None)
        self.register_buffer("scale", None)
        self.register_state_dict_post_hook(_to_state)
        self.register_load_state_dict_pre_hook(_from_state)

    def standardise(self, centre: Tensor, scale: Tensor) -> None:
        """From now on subtract the centre (columns,) from the features and multiply by the scale:
        repeated if the layer reads rows of features side by side."""
        copies = len(self.weight) // len(centre)
        self.centre = centre.to(self.weight).repeat(copies)
        one = bool((scale == scale[0]).all())
        self.scale = scale[0].to(self.weight) if one else scale.to(self.weight).repeat(copies)

    def forward(self, x: Tensor) -> Tensor:
        return self.with_bias(self.product(x))

    def product(self, x: Tensor) -> Tensor:
        """x diag(scale) W', without the centre and the bias."""
        weight = self._scaled()
        return self._sized(CSR.from_torch(x) @ weight if is_sparse(x) else x @ weight)

    def with_bias(self, y: Tensor) -> Tensor:
        """y, from `product` or a sum of them, less the centre's, plus the bias."""
        if self.centre is not None:
            y = y - self._sized(self.centre @ self._scaled())
        return super().with_bias(y)

    def _scaled(self) -> Tensor:
        """W' if the scale is one number, which products are multiplied by; else diag(scale) W'."""
        if self.scale is None or self.scale.dim() == 0:
            return self.weight
        return self.scale[:, None] * self.weight

    def _sized(self, y: Tensor) -> Tensor:
        return y if self.scale is None or self.scale.dim() else y * self.scale

    def products(self, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
        """The products of left with L' and of right with R'; L and R are the halves of W = [L, R].
        See `product`."""
        weight = self._scaled()
        if in_blocks(left) and in_blocks(right):
            both = self._sized(left.above(right) @ weight)
            return both[: left.shape[0]], both[left.shape[0] :]
        if is_sparse(left):
            # In one product: each half would have a gradient as large as all of W.
            both = self._sized(CSR.from_torch(left).diagonal_with(CSR.from_torch(right)) @ weight)
            return both[: left.shape[0]], both[left.shape[0] :]
        of_left, of_right = weight.chunk(2)
        return self._sized(left @ of_left), self._sized(right @ of_right)


def standardise_inputs(model: nn.Module, features: Tensor, nodes: Tensor) -> None:
    """Centre the sparse columns of a new model's features in the layer that reads them, and give
    them the size of standardised ones: the mean 0, and the mean of their variances 1.

    features: (all nodes, columns); nodes: whose rows may be learned from, such as training nodes

    Numbers that are none below zero, as words and tags have, move all nodes alike if each weight
    takes a step of Adam, by far more than weights of the usual size tell nodes apart. Dense columns
    stay as they are, for their scaling has standardised them.
    """
    first = next((layer for layer in model.modules() if isinstance(layer, InputLinear)), None)
    centre, scale = torch.zeros(features.shape[1]), torch.ones(features.shape[1])
    for block in Blocks.of(features).blocks if first is not None else ():
        own = block.find(nodes) if block.sparse else nodes[:0]
        rows = block.matrix.rows(own[own >= 0]) if len(own) else None
        if rows is None or not rows.num_entries:
            continue
        values = rows.weights(torch.float64)
        sums = values.new_zeros(block.width).index_add(0, rows.indices.long(), values)
        mean = sums / rows.num_rows
        variance = values.square().sum() / rows.num_rows - mean.square().sum()
        if variance > 0:
            centre[block.columns] = mean.float()
            scale[block.columns] = (block.width / variance).sqrt().float()
    if first is not None and bool((scale != 1).any()):
        first.standardise(centre, scale)


def tensors_of_centres(model: nn.Module, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors, without numbers, that a state dict has beside those of the model because layers
    were standardised."""
    found = {}
    for name, layer in model.named_modules():
        centre, scale = f"{name}.centre", f"{name}.scale"
        if isinstance(layer, InputLinear) and centre in state:
            one = scale in state and not state[scale].dim()
            found[centre] = torch.empty(layer.in_features, device="meta")
            found[scale] = torch.empty(() if one else layer.in_features, device="meta")
    return found


def _to_state(linear: nn.Module, state: dict[str, Any], prefix: str, *_: Any) -> None:
    state[f"{prefix}weight"] = state[f"{prefix}weight"].t()


def _from_state(linear: nn.Module, state: dict[str, Any], prefix: str, *_: Any) -> None:
    name = f"{prefix}weight"
    if name in state:  # it may become the weight itself
        state[name] = state[name].t().contiguous()
    for buffer in ("centre", "scale"):  # a standardised layer is loaded into a new one
        if prefix + buffer in state and getattr(linear, buffer) is None:
            setattr(linear, buffer, torch.empty_like(state[prefix + buffer]))


class BatchNorm(nn.BatchNorm1d):
    """BatchNorm1d without its count of minibatches, which nothing reads: a state dict has
    floating-point numbers alone."""

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.num_batches_tracked = None

    def _load_from_state_dict(self, *arguments: Any) -> None:  # else a count is added
        nn.Module._load_from_state_dict(self, *arguments)


NORMS: dict[str, Callable[[int], nn.Module]] = {
    "layer": nn.LayerNorm,
    "batch": BatchNorm,
    "none": lambda width: nn.Identity(),
}


class Dense(nn.Module):
    """The dense part of a graph layer: for each width, dropout, linear, norm, activation.

    widths: (input, hidden, ..., output)
    norm: a name of NORMS
    last: the end of the model, whose output is neither normalised nor activated
    drop_input: dropout on the input too; not where it was dropped before the propagation
    first: the input are features for an `InputLinear`
    """

    def __init__(
        self,
        widths: list[int],
        *,
        dropout: float,
        norm: str,
        bias: bool,
        activation: str,
        last: bool,
        drop_input: bool = True,
        first: bool = False,
    ) -> None:
        super().__init__()
        self.linears = nn.ModuleList(
            (InputLinear if first and i == 0 else Linear)(a, b, bias=bias)
            for i, (a, b) in enumerate(pairwise(widths))
        )
        inner = len(self.linears) - last
        self.norms = nn.ModuleList(NORMS[norm](width) for width in widths[1 : inner + 1])
        self.dropout = Dropout(dropout)
        self.drop_input = drop_input
        self.activation = ACTIVATIONS[activation]

    def forward(self, x: Tensor, added: Tensor | None = None) -> Tensor:
        """added: to the output of the first linear layer"""
        y: Tensor = self.linears[0](self.dropout(x) if self.drop_input else x)
        return self.after_first(y if added is None else y + added)

    def after_first(self, y: Tensor) -> Tensor:
        """Apply the layers after the first linear layer, whose output is y."""
        y = self._activated(0, y)
        for i, linear in enumerate(islice(self.linears, 1, None), start=1):
            y = self._activated(i, linear(self.dropout(y)))
        return y

    def _activated(self, i: int, y: Tensor) -> Tensor:
        """Normalised and activated, unless the model ends with linear layer i."""
        if i < len(self.norms):
            y = self.activation(self.norms[i](y))
        return y


class OutputScale(nn.Module):
    """y * deviation + mean: from the scale that a model learns in to the labels' own unit.

    Nothing happens before `set`. What was set is part of the state dict, and comes back with it.
    In double precision, for a mean may be large beside the deviation.
    """

    mean: Tensor | None
    deviation: Tensor | None

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", None)
        self.register_buffer("deviation", None)
        self.register_load_state_dict_pre_hook(_make_room)

    def set(self, mean: float, deviation: float, device: torch.device) -> None:
        if not math.isfinite(mean) or not 0 < deviation < math.inf:
            raise InputError(f"the mean {mean} and deviation {deviation} of labels are no scale")
        self.mean = torch.tensor(mean, dtype=torch.float64, device=device)
        self.deviation = torch.tensor(deviation, dtype=torch.float64, device=device)

    def forward(self, y: Tensor) -> Tensor:
        if self.mean is None or self.deviation is None:
            return y
        return y.to(self.mean.dtype) * self.deviation + self.mean


def _make_room(scale: nn.Module, state: Mapping[str, Any], prefix: str, *_: Any) -> None:
    """A state dict with a scale is loaded into a model without one, as a new model is."""
    for name in ("mean", "deviation"):
        if prefix + name in state and getattr(scale, name) is None:
            setattr(scale, name, torch.empty_like(state[prefix + name]))
