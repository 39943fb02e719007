"""An exponential average of the weights, by which a run is evaluated and kept.

With histories, validation scores swing from epoch to epoch: each step's gradient carries what old
activations leave in it. An average over about one epoch's weights does not swing. Steps and
histories are made with the weights themselves.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

_UPDATES = 16  # of the average in an epoch: each one reads all weights


class WeightAverage:
    """The average of a model's floating-point weights and buffers, of the last epoch or so.

    steps: minibatches of an epoch. With U updates an epoch, each counts e^(1/U) times as much as
        the one before; the first ones count the same, so that the beginning does not linger
    """

    def __init__(self, model: nn.Module, steps: int) -> None:
        self.model = model
        self.stride = max(1, steps // _UPDATES)
        self.share = 1 - math.exp(-self.stride / steps)
        self.updates = 0
        self.values = {name: value.detach().clone() for name, value in self._weights()}

    def stepped(self, step: int) -> None:
        """Tell it that a step was made. step: minibatches so far, this one among them"""
        if step % self.stride:
            return
        self.updates += 1
        share = max(self.share, 1 / self.updates)
        with torch.no_grad():
            for name, value in self._weights():
                self.values[name].lerp_(value, share)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """The model has the average's weights in here, and its own afterwards. Nothing is copied:
        the tensors change places."""
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
