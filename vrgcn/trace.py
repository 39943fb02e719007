"""Looking at a model before it runs: how often it propagates, what, and with dropout on or off."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from vrgcn.propagate import Propagate, version
from vrgcn.sparse import first_rows, select_rows

_MOST_CALLS = 1000


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
    before = {module: module.training for module in model.modules()}
    try:
        for module in before:
            if not isinstance(module, nn.modules.batchnorm._NormBase):
                module.training = training
            elif norms is not None:
                module.training = norms
        yield
    finally:
        for module, was in before.items():
            module.training = was


def device_of(model: nn.Module) -> torch.device:
    """Where the model's parameters are; the CPU for a model without any."""
    return next((parameter.device for parameter in model.parameters()), torch.device("cpu"))
