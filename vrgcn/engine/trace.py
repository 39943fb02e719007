"""Looking at a model before it runs: how often it propagates, what, and with dropout on or off."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase

from vrgcn.engine.propagate import Propagate, version
from vrgcn.graph.sparse import first_rows, is_sparse, select_rows

_MOST_CALLS = 1000
_ROWS = 8
_SAME = 1e-4  # of float32 products in another order


@dataclass(frozen=True)
class Trace:
    """calls: how often the model calls `propagate`
    features_first: whether its first call is of the features as they are
    """

    calls: int
    features_first: bool

    @property
    def first_table(self) -> int:
        """The first call whose input needs a history."""
        return 1 if self.features_first else 0


def trace(model: nn.Module, features: Tensor, *, training: bool) -> Trace:
    """Run the model on two nodes with P = I and note what it asks for.

    Nothing remains of it: modes and random numbers are as before, and no statistics are updated.
    """
    _check_dtypes(model, features)
    _check_width(model, features)
    device = device_of(model)
    nodes = torch.tensor([0, min(1, features.shape[0] - 1)], device=features.device)
    x = select_rows(features, nodes).to(device)
    before = version(x)
    received: list[Tensor] = []

    def answer(call: int, h: Tensor) -> Tensor:
        received.append(h)
        # A new tensor, as a real answer is: the model must not see its own input come back.
        return h.clone()

    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices), torch.no_grad(), set_mode(model, training, norms=False):
        model(x, Propagate([len(nodes)] * _MOST_CALLS, answer))
        if version(x) != before:
            raise RuntimeError(
                "the model changes its input x in place, and others start from it too; "
                "use x = x * 2 instead of x *= 2, and no inplace=True on x"
            )
        # Again with fewer nodes at each level, as in a minibatch: rows of one level that are taken
        # for another's show here, whatever the batches are like.
        sizes = [len(received) + 2 - level for level in range(len(received) + 1)]
        rows = select_rows(features, nodes[torch.arange(sizes[0]) % 2]).to(device)
        model(rows, Propagate(sizes, lambda call, h: first_rows(h, sizes[call + 1]).clone()))
    return Trace(len(received), bool(received) and received[0] is x)


def is_row_wise(model: nn.Module, features: Tensor) -> bool:
    """Whether rows do not depend on each other until the model's last call of `propagate`.

    Tried without dropout, on some nodes together and apart. Where that cannot tell (sparse
    features, nodes that are all alike) the answer is no.
    """
    if is_sparse(features) or any(isinstance(m, _NormBase) for m in model.modules()):
        return False
    device = device_of(model)
    nodes = torch.linspace(0, features.shape[0] - 1, _ROWS, device=features.device).long()
    x = features.index_select(0, nodes).to(device)
    if bool((x == x[0]).all()):
        return False
    together, first, second = (_last_input(model, rows) for rows in (x, x[:3], x[3:]))
    apart = torch.cat([first, second])
    size = float(together.abs().max())
    return together.shape == apart.shape and bool(
        torch.allclose(together, apart, rtol=_SAME, atol=_SAME * size)
    )


def _last_input(model: nn.Module, x: Tensor) -> Tensor:
    """What the model's last call of `propagate` is given, under P = I and without dropout."""
    received = [x]

    def answer(call: int, h: Tensor) -> Tensor:
        received.append(h)
        return h.clone()

    devices = [x.device] if x.device.type == "cuda" else []
    with torch.random.fork_rng(devices), torch.no_grad(), set_mode(model, False, norms=False):
        model(x, Propagate([len(x)] * _MOST_CALLS, answer))
    return received[-1]


def _check_dtypes(model: nn.Module, features: Tensor) -> None:
    dtypes = {p.dtype for p in model.parameters() if p.is_floating_point()}
    if len(dtypes) == 1 and features.dtype not in dtypes:
        raise TypeError(
            f"the features are {features.dtype} and the model's weights {dtypes.pop()}: convert "
            "one of them, by graph.with_features(graph.features.float()) or model.double()"
        )


def _check_width(model: nn.Module, features: Tensor) -> None:
    width = getattr(model, "arguments", {}).get("in_features", features.shape[1])
    if width != features.shape[1]:
        raise ValueError(
            f"the model was made for {width} feature columns (in_features), and the graph has "
            f"{features.shape[1]}"
        )


@contextmanager
def set_mode(model: nn.Module, training: bool, *, norms: bool | None = None) -> Iterator[None]:
    """The model in training or evaluation mode, and as it was afterwards.

    norms: the mode of layers that normalise over the batch; None leaves theirs as it is.
    """
    changed = []
    try:
        for module in model.modules():
            wanted = norms if isinstance(module, _NormBase) else training
            if wanted is not None and module.training != wanted:
                changed.append(module)
                _set_training(module, wanted)
        yield
    finally:
        for module in changed:
            _set_training(module, not module.training)


def _set_training(module: nn.Module, training: bool) -> None:
    attributes = vars(module)
    if "training" in attributes:  # past Module.__setattr__, which takes 3 us to do the same
        attributes["training"] = training
    else:
        module.training = training


def device_of(model: nn.Module) -> torch.device:
    """Where the model's parameters are; the CPU for a model without any."""
    return next((parameter.device for parameter in model.parameters()), torch.device("cpu"))
