"""An exponential average of the weights, which is evaluated and kept in place of the last weights.

With histories, validation scores swing from epoch to epoch, because each step's gradient carries
errors of old activations. An average over about one epoch's weights does not swing. Steps and
histories use the weights themselves.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

_UPDATES = 16  # updates of the average per epoch: each one reads all weights


class WeightAverage:
    """The average of a model's floating-point weights and buffers over about the last epoch.

    steps: minibatches of an epoch. With U updates per epoch, each counts e^(1/U) times as much as
        the one before; the first ones count the same, so that the beginning does not linger
    """

    def __init__(self, model: nn.Module, steps: int) -> None:
        self.model = model
        self.stride = max(1, steps // _UPDATES)
        self.share = 1 - math.exp(-self.stride / steps)
        self.updates = 0
        self.values = {name: value.detach().clone() for name, value in self._weights()}

    def stepped(self, step: int) -> None:
        """Count a step and update the average if due. step: minibatches so far, including this
        one"""
        if step % self.stride:
            return
        self.updates += 1
        share = max(self.share, 1 / self.updates)
        with torch.no_grad():
            for name, value in self._weights():
                self.values[name].lerp_(value, share)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Give the model the averaged weights inside this context, and its own afterwards. Nothing
        is copied: the tensors are swapped."""
        if not self.updates:
            yield
            return
        self._swap()
        try:
            yield
        finally:
            self._swap()

    def state_dict(self) -> dict[str, Tensor]:
        return {"updates": torch.tensor(self.updates), **self.values}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        self.updates = int(state["updates"])
        for name, value in self.values.items():
            value.copy_(state[name])

    def _swap(self) -> None:
        for name, weight in self._weights():
            weight.data, self.values[name] = self.values[name], weight.data

    def _weights(self) -> Iterator[tuple[str, Tensor]]:
        held = (*self.model.named_parameters(), *self.model.named_buffers())
        return ((name, value) for name, value in held if value.is_floating_point())
